/* cuda_host_fixture.h — common parts of the kernel tests: sources, and deletions of synchronisations. Failures fail the
 * running test. */
#pragma once

#include "tests/cuda_host/cuda_host.h"

/* The content of a file below tests/cuda_host. The caller frees it. */
char *cuda_source(const char *name);
cuda_host_module *cuda_compile(const char *source, cuda_host_mode mode);
/* Returns the line that contains `text`; 0 = absent. */
int cuda_line_with(const char *source, const char *text);

/* Runs a case once with the seed and the deletion of the launch. Returns false if it faulted or the numbers are
 * wrong. */
typedef bool (*cuda_case)(void *user, cuda_host_launch *launch, cuda_host_report *report);

/* A deletion that may stay undetected, and the reason. `text` occurs on the synchronisation's line. */
typedef struct cuda_argument {
    const char *text, *why;
} cuda_argument;

/* Deletes each reached synchronisation in turn. Asserts that one of `seeds` runs detects the deletion, or that an
 * argument excuses it (arguments end with a NULL text). The test also fails if an excused deletion is detected, or if
 * the case never reaches a synchronisation in the source. Returns the number of deletions. */
int assert_deletions_show(const char *source, cuda_case run, void *user, int seeds, const cuda_argument *arguments);
