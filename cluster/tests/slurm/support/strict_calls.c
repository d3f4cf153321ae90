#include "tests/slurm/support/strict_calls.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local int left = -1; /* successful allocations before the failure; below 0: no failure */
static _Thread_local int failures;

void fail_allocation_after(int count)
{
    left = count;
    failures = 0;
}

int has_failed_allocation(void)
{
    left = -1;
    return failures;
}

static int fails(void)
{
    if (left < 0) return 0;
    if (left-- > 0) return 0;
    failures = 1;
    return 1;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }

void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : __real_calloc(count, bytes); }

void *__wrap_realloc(void *old, size_t bytes) { return fails() ? NULL : __real_realloc(old, bytes); }

char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }

/* glibc refuses a held mutex, or one unlocked more often than locked. */
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    int result = __real_pthread_mutex_destroy(mutex);
    if (result == 0) return 0;
    fprintf(stderr, "a mutex is destroyed that is not free\n");
    abort();
}
