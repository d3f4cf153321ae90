/* small_job.h — a training job of a few operators, and its bytes as of a .job file. */
#ifndef TESTS_SMALL_JOB_H
#define TESTS_SMALL_JOB_H

#include "mdot/mdot.h"

/* A chain of `operators` products, no two equal, of a graph that holds Adam and a batch of 16; the caller's to destroy.
 * */
mdot_job *small_job_make(size_t operators);

/* The job in a file `path`, and the file's bytes where they are asked for, malloc'ed. */
void small_job_save(size_t operators, const char *path, unsigned char **out_bytes, size_t *out_count);

/* A file of so many bytes. */
void small_job_write_file(const char *path, const void *bytes, size_t count);

#endif
