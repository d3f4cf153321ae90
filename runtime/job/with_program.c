/* with_program.c — jobs with the program from which they were traced (mdot_program.h). */
#include "base/struct_version.h"
#include "runtime/job/job_model.h"

static const bs_struct_version program_type = BS_SIZED(mdot_job_program, recorded);

mdot_status rt_job_with_program(const rt_components *components, const mdot_job *job, const mdot_job_program *program,
                                mdot_job **out_job, mdot_error *err)
{
    if (job == NULL || out_job == NULL) return BS_INVALID(err, "mdot_job_with_program: job or out_job is NULL");
    mdot_job_program p;
    BS_TRY(rt_handle_check(job, RT_JOB, "mdot_job_with_program", err));
    BS_TRY(bs_read_struct(&program_type, program, &p, err));
    BS_TRY(rt_program_check(&p, err));
    if (p.attention == MDOT_ATTENTION_PROGRAM && job->program != NULL) p.attention = job->program->program.attention;
    rt_program taken;
    rt_program_take(&p, &taken);
    return rt_job_copy(components, job, rt_copy_operators(job), &taken, job->lengths, out_job, err);
}

mdot_status mdot_job_get_program(const mdot_job *job, mdot_job_program *out_program)
{
    if (job == NULL || !rt_handle_is_live(job, RT_JOB, __func__)) return MDOT_INVALID_ARGUMENT;
    if (job->program == NULL) {
        mdot_status status = bs_check_struct(&program_type, out_program, NULL);
        return status == MDOT_OK ? MDOT_NOT_FOUND : status;
    }
    return bs_fill_struct(&program_type, &job->program->program, out_program, NULL);
}
