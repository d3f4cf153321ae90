/* workers.h — threads for requests that take long: searches, jobs, the store, many configurations. */
#ifndef SV_WORKERS_H
#define SV_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sv_workers sv_workers;

/* NULL if memory or threads ran out. */
sv_workers *sv_workers_create(size_t threads, size_t most_waiting);
/* Waits for all tasks, and ends the threads. */
void sv_workers_destroy(sv_workers *workers);
/* Runs the task on some thread; false if too many wait. */
bool sv_workers_add(sv_workers *workers, void (*task)(void *user), void *user);

#endif
