/* command_line.h — the parts of command lines and files that all experiments share. */
#ifndef SC_COMMAND_LINE_H
#define SC_COMMAND_LINE_H

#include "simulator/core/cluster.h"

#include <stdio.h>

/* Prints the program's name and the message. Returns false. */
bool ex_refuse(const mdot_error *err);

/* Parses a number from `least` to `most` that ends at the end of the text or, if it is not '\0', before the character
 * `behind`; *out_end is that place, and out_end may be NULL. On failure, prints the reason and returns false. */
bool ex_parse(const char *option, const char *text, char behind, double least, double most, double *out_value,
              const char **out_end);

/* Splits NAME=FILE, and appends both to arrays of EX_MAX_TRACES. On failure, prints the reason and returns false. */
bool ex_add_trace(char *text, const char **names, const char **paths, size_t *count);

/* Reads window w of a trace, stretched to a load (0: its own). Windows of so many jobs lie evenly from the beginning of
 * the trace to its end. */
mdot_status ex_read_window(const char *path, size_t windows, size_t jobs, size_t window, double load,
                           const sc_cluster *cluster, sc_workload *out_workload, mdot_error *err);

/* Refuses a prefix whose files PREFIX.md, PREFIX.json or PREFIX.svg are inputs. */
mdot_status ex_check_outputs(const char *prefix, const char *predictions, const char *const *traces, size_t trace_count,
                             mdot_error *err);

/* Writes PREFIX.SUFFIX. */
mdot_status ex_write_output(const char *prefix, const char *suffix, void (*print)(FILE *stream, const void *user),
                            const void *user, mdot_error *err);

#endif
