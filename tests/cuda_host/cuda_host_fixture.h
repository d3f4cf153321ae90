/* cuda_host_fixture.h — what the tests of kernels share: sources, and the deletion of synchronisations.
 *
 * Failures fail the running test.
 */
#ifndef CUDA_HOST_FIXTURE_H
#define CUDA_HOST_FIXTURE_H

#include "tests/cuda_host/cuda_host.h"

/* The content of a file below tests/cuda_host; the caller frees it. */
char *cuda_source(const char *name);
cuda_host_module *cuda_compile(const char *source, cuda_host_mode mode);
/* The line that has `text`; 0: none. */
int cuda_line_with(const char *source, const char *text);

/* One run of a case with the launch's seed and deletion set: false where it faulted or the numbers are wrong. */
typedef bool (*cuda_case)(void *user, cuda_host_launch *launch, cuda_host_report *report);

/* A deletion that may go unseen, and why. `text` occurs on the line of the synchronisation. */
typedef struct cuda_argument {
    const char *text, *why;
} cuda_argument;

/* Deletes each synchronisation that the case reaches in turn and asserts that one of `seeds` runs shows it, or that it
 * is argued for (arguments end with a NULL text). An argument for what does show fails as well, and so does a
 * synchronisation in the source that the case doesn't reach. Returns how many were deleted. */
int assert_deletions_show(const char *source, cuda_case run, void *user, int seeds, const cuda_argument *arguments);

#endif
