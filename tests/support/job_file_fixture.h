/* job_file_fixture.h — a job of four operators with a fork and a join, where every field has a value; and `.job`
 * files in memory. */
#pragma once

#include "mdot/mdot.h"

enum { JOB_FILE_OPERATORS = 4 };

/* Returns the job description for changes by the test. It points to `operators`. */
mdot_job_description job_file_describe(mdot_job_operator operators[JOB_FILE_OPERATORS]);
mdot_job *job_file_create(const mdot_job_description *description);
mdot_job *job_file_make(void);

bool job_file_equal(const mdot_job *a, const mdot_job *b);
void job_file_expect_same(const mdot_job *a, const mdot_job *b);

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Ends of the checksum and the header, and the size of a section table entry: runtime/job/job_file.c. */
enum { JOB_FILE_CHECKSUM_END = 32, JOB_FILE_HEADER_BYTES = 40, JOB_FILE_ENTRY_BYTES = 16 };

/* Sets size and checksum. */
void job_file_sign(unsigned char *bytes, size_t size);
/* Parses a block of exactly that size, so a read beyond it is detected. */
mdot_status job_file_parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err);
void job_file_expect_fault(const unsigned char *bytes, size_t size, mdot_status expected);

/* A section with the entry in the section table; the first three members are the bytes. */
typedef struct job_file_section {
    uint32_t tag, flags;
    uint64_t size;
    const unsigned char *bytes;
} job_file_section;
enum { JOB_FILE_MAX_SECTIONS = 8 };

/* Finds the sections in a version 3 file, and leaves room for one more. Returns their number. */
size_t job_file_list_sections(const unsigned char *bytes, job_file_section out[JOB_FILE_MAX_SECTIONS]);
/* Writes and signs a file with these sections and the header of `bytes`. Returns the size. The test fails if that
 * exceeds `capacity`. */
size_t job_file_write_sections(const unsigned char *bytes, const job_file_section *sections, size_t section_count,
                               unsigned char *out, size_t capacity);
/* Saves the job in a new folder, and reads the file. Returns the size. The test fails if it exceeds `capacity`. */
size_t job_file_bytes_of(const mdot_job *job, unsigned char *out, size_t capacity);
