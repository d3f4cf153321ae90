/* with_program.h — jobs that hold the program that they were traced from (mdot_program.h). */
#ifndef RT_WITH_PROGRAM_H
#define RT_WITH_PROGRAM_H

#include "mdot/mdot_program.h"
#include "runtime/core/core.h"

/* mdot_job_with_program with these components, which must outlive the job. */
mdot_status rt_job_with_program(const rt_components *components, const mdot_job *job, const mdot_job_program *program,
                                mdot_job **out_job, mdot_error *err);

#endif
