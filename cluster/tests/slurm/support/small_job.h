/* small_job.h — a small training job, also as .job file bytes. */
#ifndef TESTS_SMALL_JOB_H
#define TESTS_SMALL_JOB_H

#include "mdot/mdot.h"

/* Makes a chain of `operators` different matmuls in a graph with Adam and a batch of 16. The caller destroys it. */
mdot_job *small_job_make(size_t operators);

/* Saves the job to the file `path`. The bytes of the file are returned on request, malloc'ed. */
void small_job_save(size_t operators, const char *path, unsigned char **out_bytes, size_t *out_count);

/* Reads a whole file; the bytes are malloc'ed. */
void small_job_read_file(const char *path, unsigned char **out_bytes, size_t *out_count);

/* Writes a file with these bytes. */
void small_job_write_file(const char *path, const void *bytes, size_t count);

#endif
