/* program_fixture.h — a valid program with two memory records and a work check, for tests of jobs and job files. */
#pragma once

#include "mdot/mdot.h"

mdot_job_program program_fixture(void);
/* The fixture's job with this program. The caller destroys the result. */
mdot_job *program_fixture_job(const mdot_job_program *program);
/* The job's program. */
mdot_job_program program_fixture_of(const mdot_job *job);
void program_fixture_expect_equal(const mdot_job_program *a, const mdot_job_program *b);
