/* strict_calls.h — libc functions failing on request, and mutexes checked for release on destruction. Programs with it
 * are linked with --wrap for malloc, calloc, realloc, strdup and pthread_mutex_destroy (CMakeLists.txt). */
#ifndef SL_TESTS_STRICT_CALLS_H
#define SL_TESTS_STRICT_CALLS_H

/* Lets `count` allocations of the calling thread succeed; the next one fails, and those behind it succeed again. */
void fail_allocation_after(int count);
/* Ends that. Returns 1 if an allocation failed. */
int has_failed_allocation(void);

#endif
