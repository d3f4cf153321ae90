/* with_length.c — makes jobs with a symbolic length, and jobs at another length (lengths.c). */
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

static mdot_status refuse_length(int64_t length, mdot_error *err)
{
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "the length is %lld; accepted: 1 to %lld", (long long)length,
                     (long long)RT_MAX_LENGTH);
}

mdot_status rt_job_with_length(const rt_components *components, const mdot_job *job, int64_t length, mdot_job **out_job,
                               mdot_error *err)
{
    if (job == NULL || out_job == NULL) return BS_INVALID(err, "mdot_job_with_length: job or out_job is NULL");
    mdot_status status = rt_handle_check(job, RT_JOB, "mdot_job_with_length", err);
    if (status != MDOT_OK) return status;
    if (job->lengths == NULL)
        return BS_INVALID(err,
                          "the job has no symbolic length: extract it from a model with a symbolic length, or trace it "
                          "at three lengths");
    if (length < 1 || length > RT_MAX_LENGTH) return refuse_length(length, err);
    size_t bytes = sizeof *job->lengths + job->lengths->count * sizeof *job->lengths->varying;
    rt_lengths *lengths = rt_lengths_create(job->lengths->count);
    rt_program *program = job->program != NULL ? rt_program_copy(job->program) : NULL;
    const rt_job_numbers n = {rt_copy_operators(job), job->info.operator_count, program};
    bool allocated = lengths != NULL && n.operators != NULL && (job->program == NULL || program != NULL);
    bool is_valid = allocated;
    if (allocated) {
        memcpy(lengths, job->lengths, bytes);
        is_valid = rt_lengths_apply(lengths, length, &n) &&
                   (program == NULL || rt_program_check(&program->program, NULL) == MDOT_OK);
    }
    if (is_valid) {
        if (program != NULL) rt_program_forget(job->analyzer, job->analysis, job->program, program);
        status = rt_job_copy(components, job, n.operators, program, lengths, out_job, err);
        is_valid = status != MDOT_INVALID_ARGUMENT;
    } else {
        free(n.operators);
    }
    if (!allocated)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    else if (!is_valid)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE, "at length %lld, an operator has more than 2^62 FLOPs or bytes",
                           (long long)length);
    free(lengths);
    free(program);
    return status;
}

static bool equal_texts(const char *a, const char *b) { return a == b || (a != NULL && b != NULL && !strcmp(a, b)); }

static bool equal_operators(const mdot_job_operator *x, const mdot_job_operator *y)
{
    return equal_texts(x->type, y->type) && equal_texts(x->module, y->module) && x->known == y->known &&
           x->flags == y->flags && x->block == y->block && x->batch_settings == y->batch_settings &&
           x->input_count == y->input_count &&
           (x->input_count == 0 || memcmp(x->inputs, y->inputs, x->input_count * sizeof *x->inputs) == 0);
}

static mdot_status check_jobs(const mdot_job *const jobs[RT_LENGTH_COUNT], mdot_error *err)
{
    const mdot_job *first = jobs[0];
    for (int k = 1; k < RT_LENGTH_COUNT; k++) {
        if (jobs[k]->info.operator_count != first->info.operator_count)
            return BS_INVALID(err, "the jobs at two lengths have %zu and %zu operators, so they are not one network",
                              first->info.operator_count, jobs[k]->info.operator_count);
        for (size_t i = 0; i < first->info.operator_count; i++)
            if (!equal_operators(&first->operators[i], &jobs[k]->operators[i]))
                return BS_INVALID(err,
                                  "operator %zu differs between the lengths (%s and %s), or it reads other operators",
                                  i, first->operators[i].type, jobs[k]->operators[i].type);
        if ((jobs[k]->program == NULL) != (first->program == NULL))
            return BS_INVALID(err, "only some of the jobs come from a program");
    }
    return MDOT_OK;
}

/* The lists of moments become equally long by repetition, which changes no peak. */
static mdot_status align_programs(const mdot_job *const jobs[RT_LENGTH_COUNT], rt_program out[RT_LENGTH_COUNT],
                                  mdot_error *err)
{
    for (int k = 0; k < RT_LENGTH_COUNT; k++) {
        out[k] = *jobs[k]->program;
        rt_program_link(&out[k]);
        if (out[k].program.recorded_count != out[0].program.recorded_count)
            return BS_INVALID(err, "the jobs at the lengths have different records of memory");
    }
    for (size_t i = 0; i < out[0].program.recorded_count; i++) {
        size_t largest = 0;
        for (int k = 0; k < RT_LENGTH_COUNT; k++) {
            const mdot_recorded_memory *r = &out[k].records[i], *first = &out[0].records[i];
            if (r->precision != first->precision || r->recompute != first->recompute || r->compiled != first->compiled)
                return BS_INVALID(err, "the jobs at the lengths have different records of memory");
            if (r->moment_count > largest) largest = r->moment_count;
        }
        for (int k = 0; k < RT_LENGTH_COUNT; k++) {
            mdot_recorded_memory *r = &out[k].records[i];
            for (; r->moment_count < largest; r->moment_count++)
                out[k].moments[i][r->moment_count] = out[k].moments[i][0];
        }
    }
    return MDOT_OK;
}

static mdot_status check_lengths(const int64_t lengths[RT_LENGTH_COUNT], const char *name, mdot_error *err)
{
    for (int k = 0; k < RT_LENGTH_COUNT; k++)
        if (lengths[k] < 1 || lengths[k] > RT_MAX_LENGTH) return refuse_length(lengths[k], err);
    if (lengths[0] == lengths[1] || lengths[0] == lengths[2] || lengths[1] == lengths[2])
        return BS_INVALID(err, "two of the three lengths are equal");
    if (name[0] == '\0' || strnlen(name, RT_LENGTH_NAME_BYTES) == RT_LENGTH_NAME_BYTES)
        return BS_INVALID(err, "the length's name must have 1 to %d bytes", RT_LENGTH_NAME_BYTES - 1);
    return MDOT_OK;
}

static mdot_status join(const rt_components *components, const mdot_job *const jobs[RT_LENGTH_COUNT],
                        const int64_t lengths[RT_LENGTH_COUNT], const char *name, rt_program *programs,
                        mdot_job **out_job, mdot_error *err)
{
    bool has_program = jobs[0]->program != NULL;
    rt_job_numbers n[RT_LENGTH_COUNT];
    BS_TRY(has_program ? align_programs(jobs, programs, err) : MDOT_OK);
    for (int k = 0; k < RT_LENGTH_COUNT; k++)
        n[k] = (rt_job_numbers){jobs[k]->operators, jobs[k]->info.operator_count, has_program ? &programs[k] : NULL};
    size_t count = rt_lengths_collect(n, NULL);
    rt_lengths *joined = rt_lengths_create(count);
    if (joined == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    memcpy(joined->name, name, strlen(name));
    memcpy(joined->length, lengths, sizeof joined->length);
    joined->current = lengths[0];
    joined->count = rt_lengths_collect(n, joined->varying);
    mdot_status status =
        rt_job_copy(components, jobs[0], rt_copy_operators(jobs[0]), n[0].program, joined, out_job, err);
    free(joined);
    return status;
}

mdot_status rt_job_of_lengths(const rt_components *components, const mdot_job *const jobs[3], const int64_t lengths[3],
                              const char *name, mdot_job **out_job, mdot_error *err)
{
    if (jobs == NULL || lengths == NULL || name == NULL || out_job == NULL)
        return BS_INVALID(err, "mdot_job_of_lengths requires jobs, lengths, a name and out_job");
    BS_TRY(check_lengths(lengths, name, err));
    for (int k = 0; k < RT_LENGTH_COUNT; k++) {
        if (jobs[k] == NULL) return BS_INVALID(err, "mdot_job_of_lengths: jobs[%d] is NULL", k);
        BS_TRY(rt_handle_check(jobs[k], RT_JOB, "mdot_job_of_lengths", err));
    }
    BS_TRY(check_jobs(jobs, err));
    rt_program *programs = calloc(RT_LENGTH_COUNT, sizeof *programs);
    if (programs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = join(components, jobs, lengths, name, programs, out_job, err);
    free(programs);
    return status;
}
