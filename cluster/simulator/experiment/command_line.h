/* command_line.h — common parts of all experiments: options, windows, output files, parallel runs. */
#ifndef SC_COMMAND_LINE_H
#define SC_COMMAND_LINE_H

#include "mdot/mdot_base.h"

#include "simulator/core/cluster.h"

#include <stddef.h>
#include <stdio.h>

/* Prints the program's name and the message. Returns false. */
bool ex_refuse(const mdot_error *err);

/* Parses a number from `least` to `most`. It must end at the end of the text or, if `behind` is not '\0', before that
 * character; *out_end is that place, and out_end may be NULL. On failure, prints the reason and returns false. */
bool ex_parse(const char *option, const char *text, char behind, double least, double most, double *out_value,
              const char **out_end);

/* Splits NAME=FILE, and appends both to arrays of EX_MAX_TRACES. On failure, prints the reason and returns false. */
bool ex_add_trace(char *text, const char **names, const char **paths, size_t *count);

/* Reads window w of a trace, stretched to a load (0: its own). Windows with `jobs` jobs lie evenly along the trace. */
mdot_status ex_read_window(const char *path, size_t windows, size_t jobs, size_t window, double load,
                           const sc_cluster *cluster, sc_workload *out_workload, mdot_error *err);

/* Refuses a prefix whose files PREFIX.md or PREFIX.json are inputs. */
mdot_status ex_check_outputs(const char *prefix, const char *predictions, const char *const *traces, size_t trace_count,
                             mdot_error *err);

/* Writes PREFIX.SUFFIX. */
mdot_status ex_write_output(const char *prefix, const char *suffix, void (*print)(FILE *stream, const void *user),
                            const void *user, mdot_error *err);

/* ---- Parallel ---------------------------------------------------------------------------------------------------- */

/* Runs independent tasks in processes on all cores. */

size_t ex_core_count(void);

/* Computes `count` results of `size` bytes each, in child processes on `workers` cores. `run` fills one result. Returns
 * the first error in task order. `progress` may be NULL. The caller frees the results with ex_parallel_free. */
mdot_status ex_parallel(size_t count, size_t size, size_t workers,
                        mdot_status (*run)(void *user, size_t task, void *out_result, mdot_error *err), void *user,
                        void (*progress)(size_t done, size_t total), void **out_results, mdot_error *err);
void ex_parallel_free(void *results, size_t count, size_t size);

#endif
