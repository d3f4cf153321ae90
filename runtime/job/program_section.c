/* program_section.c — the program's section in a `.job` file. Private to runtime/job. */
#include "runtime/job/job_file.h"

#include <stdlib.h>
#include <string.h>

enum { COMPILED = 2 * MDOT_RECOMPUTE_SELECTIVE + 1 }; /* minus the recomputation of compiled code */

static void put_record(rt_writer *w, const rt_program *p, size_t index)
{
    const mdot_recorded_memory *r = &p->records[index];
    rt_put(w, (uint64_t)r->precision);
    rt_put(w, r->compiled ? COMPILED - (uint64_t)r->recompute : (uint64_t)r->recompute);
    rt_put(w, (uint64_t)p->analytic_bytes[index]);
    rt_put(w, r->moment_count);
    for (size_t k = 0; k < r->moment_count; k++) {
        const mdot_peak_moment *m = &p->moments[index][k];
        rt_put(w, (uint64_t)m->per_sample);
        rt_put(w, (uint64_t)m->per_step);
        rt_put(w, (uint64_t)m->weight_copies);
        rt_put(w, (uint64_t)(m->gradients * RT_PROGRAM_FRACTIONS));
        rt_put(w, (uint64_t)m->logits);
    }
    bool has_squares = false;
    for (size_t k = 0; k < r->moment_count; k++) has_squares = has_squares || p->moments[index][k].per_square > 0;
    for (size_t k = 0; k < r->moment_count && has_squares; k++) rt_put(w, (uint64_t)p->moments[index][k].per_square);
}

enum { CHECK_COUNTS = 7 };

static double *check_count(mdot_job_check *check, int i)
{
    double *const counts[CHECK_COUNTS] = {
        &check->dispatched_flops[0], &check->dispatched_flops[1], &check->job_flops[0],  &check->job_flops[1],
        &check->recorded_peak,       &check->predicted_peak,      &check->unpriced_bytes};
    return counts[i];
}

/* The numbers behind the records, absent if all are zero. */
static void put_check(rt_writer *w, const rt_program *p)
{
    mdot_job_check check = p->program.check;
    bool has_check = p->program.framework > 0 || check.unpriced_operators > 0 || check.modules != NULL;
    for (int i = 0; i < CHECK_COUNTS; i++) has_check = has_check || *check_count(&check, i) > 0;
    if (!has_check) return;
    rt_put(w, p->program.framework);
    for (int i = 0; i < CHECK_COUNTS; i++) rt_put(w, (uint64_t)*check_count(&check, i));
    rt_put(w, check.unpriced_operators);
    rt_put_text(w, check.modules != NULL ? check.modules : "");
}

static void get_check(rt_reader *r, rt_program *p)
{
    if (rt_bytes_left(r) == 0) return;
    p->program.framework = (uint32_t)rt_get_below(r, (uint64_t)UINT32_MAX + 1);
    for (int i = 0; i < CHECK_COUNTS; i++)
        *check_count(&p->program.check, i) = (double)rt_get_below(r, (uint64_t)RT_MAX_CHECK + 1);
    p->program.check.unpriced_operators = (uint32_t)rt_get_below(r, (uint64_t)UINT32_MAX + 1);
    size_t size = rt_get_below(r, sizeof p->check_modules);
    rt_reader text = rt_get_bytes(r, size);
    r->failed = r->failed || text.failed || memchr(text.at, '\0', rt_bytes_left(&text)) != NULL;
    if (!r->failed) memcpy(p->check_modules, text.at, size);
}

void rt_put_program(rt_writer *w, const rt_program *p)
{
    rt_writer record = {0};
    rt_put(w, (uint64_t)p->program.precision);
    rt_put(w, (uint64_t)p->program.attention);
    rt_put(w, p->program.has_loss);
    rt_put(w, (uint64_t)p->program.trained_bytes);
    rt_put(w, (uint64_t)p->program.frozen_bytes);
    rt_put(w, (uint64_t)p->program.buffer_bytes);
    rt_put(w, p->program.recorded_count);
    for (size_t i = 0; i < p->program.recorded_count; i++) {
        put_record(&record, p, i);
        rt_put_part(w, &record);
    }
    w->failed = w->failed || record.failed;
    free(record.bytes);
    put_check(w, p);
}

static void get_record(rt_reader *r, rt_program *p, size_t index)
{
    mdot_recorded_memory *record = &p->records[index];
    record->precision = (mdot_precision)rt_get_below(r, MDOT_PRECISION_PYTORCH + 1);
    uint64_t recompute = rt_get_below(r, COMPILED);
    record->compiled = recompute > MDOT_RECOMPUTE_SELECTIVE;
    record->recompute = (mdot_recompute)(record->compiled ? COMPILED - recompute : recompute);
    p->analytic_bytes[index] = rt_get_count(r);
    record->moment_count = rt_get_below(r, MDOT_PEAK_MOMENTS_MAX + 1);
    for (size_t k = 0; k < record->moment_count; k++) {
        mdot_peak_moment *m = &p->moments[index][k];
        m->per_sample = rt_get_count(r);
        m->per_step = rt_get_count(r);
        m->weight_copies = rt_get_count(r);
        m->gradients = (double)rt_get_below(r, RT_PROGRAM_FRACTIONS + 1) / RT_PROGRAM_FRACTIONS;
        m->logits = rt_get_count(r);
    }
    for (size_t k = 0; k < record->moment_count && rt_bytes_left(r) > 0; k++)
        p->moments[index][k].per_square = rt_get_count(r);
}

void rt_get_program(rt_reader *r, rt_program *p)
{
    *p = (rt_program){0};
    p->program.precision = (mdot_precision)rt_get_below(r, MDOT_PRECISION_PYTORCH + 1);
    p->program.attention = (mdot_attention)rt_get_below(r, MDOT_ATTENTION_FLASH + 1);
    p->program.has_loss = rt_get_below(r, 2) != 0;
    p->program.trained_bytes = rt_get_count(r);
    p->program.frozen_bytes = rt_get_count(r);
    p->program.buffer_bytes = rt_get_count(r);
    p->program.recorded_count = rt_get_below(r, MDOT_RECORDED_MEMORY_MAX + 1);
    for (size_t i = 0; i < p->program.recorded_count && !r->failed; i++) {
        rt_reader record = rt_get_part(r);
        get_record(&record, p, i);
        r->failed = r->failed || record.failed;
    }
    get_check(r, p);
    rt_program_link(p);
    r->failed = r->failed || rt_program_check(&p->program, NULL) != MDOT_OK;
}
