/* job_file_fixture.h — a job of four operators, a fork and a join, with something in every field; and `.job` files in
 * memory. */
#ifndef TEST_JOB_FILE_FIXTURE_H
#define TEST_JOB_FILE_FIXTURE_H

#include "mdot/mdot.h"

enum { JOB_FILE_OPERATORS = 4 };

/* The job as it is described, for a test to change; the description points to `operators`. */
mdot_job_description job_file_describe(mdot_job_operator operators[JOB_FILE_OPERATORS]);
mdot_job *job_file_create(const mdot_job_description *description);
mdot_job *job_file_make(void);

bool job_file_equal(const mdot_job *a, const mdot_job *b);
void job_file_expect_same(const mdot_job *a, const mdot_job *b);

/* ---- Files ------------------------------------------------------------------------------------------------------- */

enum { JOB_FILE_HEADER_BYTES = 32 };

/* Puts size and checksum right. */
void job_file_sign(unsigned char *bytes, size_t size);
/* From a block of just that size, so that a read beyond it is seen. */
mdot_status job_file_parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err);
void job_file_expect_fault(const unsigned char *bytes, size_t size, mdot_status expected);

#endif
