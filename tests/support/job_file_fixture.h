/* job_file_fixture.h — a job of four operators with a fork and a join, where every field has a value; and `.job`
 * files in memory. */
#ifndef TEST_JOB_FILE_FIXTURE_H
#define TEST_JOB_FILE_FIXTURE_H

#include "mdot/mdot.h"

enum { JOB_FILE_OPERATORS = 4 };

/* Returns the description of the job, which a test may change. It points to `operators`. */
mdot_job_description job_file_describe(mdot_job_operator operators[JOB_FILE_OPERATORS]);
mdot_job *job_file_create(const mdot_job_description *description);
mdot_job *job_file_make(void);

bool job_file_equal(const mdot_job *a, const mdot_job *b);
void job_file_expect_same(const mdot_job *a, const mdot_job *b);

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Ends of the checksum and of the header, and the size of an entry of the table of sections: runtime/job/job_file.c. */
enum { JOB_FILE_CHECKSUM_END = 32, JOB_FILE_HEADER_BYTES = 40, JOB_FILE_ENTRY_BYTES = 16 };

/* Sets size and checksum. */
void job_file_sign(unsigned char *bytes, size_t size);
/* Parses a block of exactly that size, so that a read beyond it is detected. */
mdot_status job_file_parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err);
void job_file_expect_fault(const unsigned char *bytes, size_t size, mdot_status expected);

#endif
