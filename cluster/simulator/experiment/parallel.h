/* parallel.h — runs independent tasks in processes on all cores. */
#ifndef SC_PARALLEL_H
#define SC_PARALLEL_H

#include "mdot/mdot_base.h"

#include <stddef.h>

/* Returns the number of cores that this process may use. */
size_t ex_core_count(void);

/* Computes `count` results of `size` bytes each. `run` is called in a child process, once per task, and fills its
 * result. Returns the first error in the order of tasks. `progress` may be NULL. The caller frees the results with
 * ex_parallel_free. */
mdot_status ex_parallel(size_t count, size_t size, size_t workers,
                        mdot_status (*run)(void *user, size_t task, void *out_result, mdot_error *err), void *user,
                        void (*progress)(size_t done, size_t total), void **out_results, mdot_error *err);
void ex_parallel_free(void *results, size_t count, size_t size);

#endif
