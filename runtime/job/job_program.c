/* job_program.c — how the PyTorch program of a job was written (mdot_program.h). */
#include "runtime/job/job_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_bytes(double number) { return number >= 0 && number <= RT_JOB_MAX_COUNT; /* false for NaN */ }

static bool is_recorded_precision(mdot_precision precision)
{
    return precision == MDOT_PRECISION_FP32 || precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_BF16;
}

static bool is_program_precision(mdot_precision precision)
{
    return precision == MDOT_PRECISION_PYTORCH || precision == MDOT_PRECISION_BF16 || precision == MDOT_PRECISION_AMP ||
           precision == MDOT_PRECISION_AMP_BF16;
}

static mdot_status check_moment(const mdot_peak_moment *m, size_t record, size_t index, mdot_error *err)
{
    bool valid =
        is_bytes(m->per_sample) && is_bytes(m->per_step) && is_bytes(m->weight_copies) && is_bytes(m->per_square);
    valid = valid && m->gradients >= 0 && m->gradients <= 1 && m->logits >= 0 && m->logits <= m->per_sample;
    if (valid) return MDOT_OK;
    return BS_INVALID(
        err,
        "recorded[%zu].moments[%zu]: bytes must be numbers from 0 to 2^62, logits at most per_sample, and "
        "gradients a fraction from 0 to 1",
        record, index);
}

static mdot_status check_record(const mdot_job_program *p, size_t index, mdot_error *err)
{
    const mdot_recorded_memory *r = &p->recorded[index];
    if (!is_recorded_precision(r->precision))
        return BS_INVALID(err, "recorded[%zu].precision is %d; accepted: fp32, amp, bf16", index, (int)r->precision);
    if ((unsigned)r->recompute > MDOT_RECOMPUTE_SELECTIVE)
        return BS_INVALID(err, "recorded[%zu].recompute is %d; accepted: nothing, blocks, selective", index,
                          (int)r->recompute);
    if (r->compiled && r->recompute == MDOT_RECOMPUTE_NOTHING)
        return BS_INVALID(err, "recorded[%zu] is compiled: its recompute must be selective or blocks", index);
    for (size_t i = 0; i < index; i++)
        if (p->recorded[i].precision == r->precision && p->recorded[i].recompute == r->recompute &&
            p->recorded[i].compiled == r->compiled)
            return BS_INVALID(
                err, "recorded[%zu] has the precision and recomputation of recorded[%zu]: pass one of them", index, i);
    if (r->moment_count < 1 || r->moment_count > MDOT_PEAK_MOMENTS_MAX || r->moments == NULL)
        return BS_INVALID(err, "recorded[%zu] has %zu moments; accepted: 1 to %d", index,
                          r->moments != NULL ? r->moment_count : 0, MDOT_PEAK_MOMENTS_MAX);
    for (size_t i = 0; i < r->moment_count; i++) BS_TRY(check_moment(&r->moments[i], index, i, err));
    return MDOT_OK;
}

static mdot_status check_work(const mdot_job_check *c, mdot_error *err)
{
    bool valid = c->recorded_peak >= 0 && c->predicted_peak >= 0 && c->unpriced_bytes >= 0; /* false for NaN */
    for (int i = 0; i < 2; i++) valid = valid && c->dispatched_flops[i] >= 0 && c->job_flops[i] >= 0;
    if (!valid) return BS_INVALID(err, "the work check's bytes and FLOPs must be numbers of at least 0");
    if (c->modules != NULL && strnlen(c->modules, MDOT_CHECK_TEXT_BYTES + 1) > MDOT_CHECK_TEXT_BYTES)
        return BS_INVALID(err, "the work check's text has more than %d bytes", MDOT_CHECK_TEXT_BYTES);
    return MDOT_OK;
}

mdot_status rt_program_check(const mdot_job_program *p, mdot_error *err)
{
    if (!is_program_precision(p->precision))
        return BS_INVALID(err, "the program's precision is %d; accepted: pytorch, bf16, amp-fp16, amp-bf16",
                          (int)p->precision);
    if ((unsigned)p->attention > MDOT_ATTENTION_FLASH)
        return BS_INVALID(err, "the program's attention is %d; accepted: program, eager, flash", (int)p->attention);
    if (!is_bytes(p->trained_bytes) || !is_bytes(p->frozen_bytes) || !is_bytes(p->buffer_bytes))
        return BS_INVALID(err, "trained_bytes, frozen_bytes and buffer_bytes must be numbers from 0 to 2^62");
    if (p->recorded_count > MDOT_RECORDED_MEMORY_MAX || (p->recorded_count > 0 && p->recorded == NULL))
        return BS_INVALID(err, "the program has %zu records of memory; accepted: 0 to %d",
                          p->recorded != NULL ? p->recorded_count : 0, MDOT_RECORDED_MEMORY_MAX);
    mdot_status status = check_work(&p->check, err);
    for (size_t i = 0; i < p->recorded_count && status == MDOT_OK; i++) status = check_record(p, i, err);
    return status;
}

void rt_program_link(rt_program *p)
{
    p->program.struct_size = sizeof p->program;
    p->program.recorded = p->program.recorded_count > 0 ? p->records : NULL;
    for (size_t i = 0; i < p->program.recorded_count; i++) p->records[i].moments = p->moments[i];
    p->program.check.modules = p->check_modules[0] != '\0' ? p->check_modules : NULL;
}

rt_program *rt_program_copy(const rt_program *program)
{
    rt_program *copy = malloc(sizeof *copy);
    if (copy == NULL) return NULL;
    *copy = *program;
    rt_program_link(copy);
    return copy;
}

/* A number of the work check; a pass at a large batch may have more than a file holds. */
static double in_check(double number) { return fmin(rint(number), RT_MAX_CHECK); }

void rt_program_take(const mdot_job_program *source, rt_program *out)
{
    *out = (rt_program){.program = *source};
    out->program.trained_bytes = rint(source->trained_bytes);
    out->program.frozen_bytes = rint(source->frozen_bytes);
    out->program.buffer_bytes = rint(source->buffer_bytes);
    for (size_t i = 0; i < source->recorded_count; i++) {
        out->records[i] = source->recorded[i];
        for (size_t k = 0; k < source->recorded[i].moment_count; k++) {
            const mdot_peak_moment *m = &source->recorded[i].moments[k];
            out->moments[i][k] = (mdot_peak_moment){
                rint(m->per_sample),    rint(m->per_step),
                rint(m->weight_copies), rint(m->gradients * RT_PROGRAM_FRACTIONS) / RT_PROGRAM_FRACTIONS,
                rint(m->logits),        rint(m->per_square)};
        }
    }
    mdot_job_check *check = &out->program.check;
    for (int i = 0; i < 2; i++) {
        check->dispatched_flops[i] = in_check(check->dispatched_flops[i]);
        check->job_flops[i] = in_check(check->job_flops[i]);
    }
    check->recorded_peak = in_check(check->recorded_peak);
    check->predicted_peak = in_check(check->predicted_peak);
    check->unpriced_bytes = in_check(check->unpriced_bytes);
    if (check->modules != NULL) snprintf(out->check_modules, sizeof out->check_modules, "%s", check->modules);
    rt_program_link(out);
}

/* The analytic model's bytes per sample of a record. */
static double estimate(const rt_job_analyzer *analyzer, const rt_analysis *analysis, const rt_program *p, size_t record)
{
    const mdot_recorded_memory *r = &p->records[record];
    mdot_attention attention =
        p->program.attention == MDOT_ATTENTION_EAGER ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH;
    double bytes = rint(analyzer->activation_bytes(analysis, r->precision, attention, r->recompute));
    return fmin(bytes, RT_JOB_MAX_COUNT); /* a saved job can be loaded */
}

void rt_program_estimate(const rt_job_analyzer *analyzer, const rt_analysis *analysis, rt_program *p)
{
    for (size_t i = 0; i < p->program.recorded_count; i++)
        if (!(p->analytic_bytes[i] > 0)) p->analytic_bytes[i] = estimate(analyzer, analysis, p, i);
}

void rt_program_forget(const rt_job_analyzer *analyzer, const rt_analysis *analysis, const rt_program *p,
                       rt_program *out)
{
    for (size_t i = 0; i < p->program.recorded_count; i++)
        if (p->analytic_bytes[i] == estimate(analyzer, analysis, p, i)) out->analytic_bytes[i] = 0;
}

void rt_program_freeze(rt_program *p, double trained_part)
{
    double frozen = rint(p->program.trained_bytes * (1 - trained_part));
    p->program.trained_bytes -= frozen;
    p->program.frozen_bytes += frozen;
}
