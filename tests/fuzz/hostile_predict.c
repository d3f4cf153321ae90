/* hostile_predict.c — see hostile_job.h. */
#include "runtime/job/configuration_table.h"
#include "tests/fuzz/hostile_job.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONFIGURATIONS = 3 };

/* One predictor with a single graph, which explains itself, and one with two entries. */
static predict_fixture whole, pair;

void hostile_predict_open(void)
{
    predict_open_explained(&whole, predict_bandwidth_model(), predict_bandwidth_explained());
    predict_open_pair(&pair, predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", 4));
}

void hostile_predict_close(void)
{
    predict_close(&whole);
    predict_close(&pair);
}

typedef struct source {
    const uint8_t *at, *end;
} source;

/* Returns the next byte, or 0 if they are used up. */
static unsigned draw(source *s) { return s->at < s->end ? *s->at++ : 0; }

/* A number on a logarithmic scale, from 1e-7 to 1e10, or one that is never valid. */
static double draw_real(source *s)
{
    unsigned byte = draw(s);
    return byte == 255   ? NAN
           : byte == 254 ? INFINITY
           : byte == 253 ? -1
           : byte == 252 ? 0
                         : pow(10, byte * 17.0 / 251 - 7);
}

static double draw_value(source *s, const rt_option *o)
{
    switch (o->kind) {
    case RT_KIND_REAL: return draw_real(s);
    case RT_KIND_COUNT:
    case RT_KIND_WHOLE: return (double)((int64_t)1 << draw(s) % 18);
    case RT_KIND_VERSION: return 100 + draw(s);
    default: return draw(s) % ((unsigned)o->most + 2); /* the last one is invalid */
    }
}

static mdot_gpu draw_gpu(source *s)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    double *const numbers[] = {&gpu.compute_capability, &gpu.sm_count,    &gpu.boost_mhz,   &gpu.memory_gib,
                               &gpu.memory_gbps,        &gpu.l2_mib,      &gpu.fp32_tflops, &gpu.tf32_tflops,
                               &gpu.fp16_tflops,        &gpu.nvlink_gbps, &gpu.pcie_gbps,   &gpu.watts};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = draw_real(s);
    return gpu;
}

static mdot_configuration draw_configuration(source *s, mdot_gpu *gpu)
{
    mdot_configuration c = MDOT_INIT(mdot_configuration);
    size_t known = 0;
    while (mdot_gpu_names()[known] != NULL) known++;
    c.batch = (int64_t)1 << draw(s) % 25;
    unsigned choice = draw(s);
    c.gpu = mdot_gpu_names()[choice % known];
    if (choice == 255) {
        *gpu = draw_gpu(s);
        c.gpu = NULL;
        c.gpu_spec = gpu;
    }
    /* Few options at a time, because most combinations are refused. */
    for (unsigned left = draw(s) % 8; left > 0; left--) {
        const rt_option *o = &rt_options[draw(s) % RT_OPTION_COUNT];
        if (o->section != RT_SECTION_JOB) rt_option_set(&c, o, draw_value(s, o));
    }
    return c;
}

#define require(holds) require_at(holds, __LINE__)

static void require_at(bool holds, int line)
{
    if (holds) return;
    fprintf(stderr, "%s:%d: this must hold\n", __FILE__, line);
    abort();
}

static void check(const mdot_prediction *p)
{
    require(p->status == MDOT_OK && p->step_ms > 0 && isfinite(p->upper_ms));
    require(p->lower_ms > 0 && p->lower_ms <= p->step_ms && p->step_ms <= p->upper_ms);
    const double numbers[] = {p->parameters,       p->flops_per_sample, p->compute_share,  p->memory_share,
                              p->unknown_share,    p->weight_bytes,     p->gradient_bytes, p->optimizer_bytes,
                              p->activation_bytes, p->rounding_bytes,   p->context_bytes,  p->workspace_bytes,
                              p->collective_bytes, p->average_watts,    p->energy_joules};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) require(isfinite(numbers[i]) && numbers[i] >= 0);
    require(p->memory_lower_bytes <= p->peak_memory_bytes && p->peak_memory_bytes <= p->memory_upper_bytes);
    require(p->reserved_bytes >= p->peak_memory_bytes && p->fits == (p->reserved_bytes <= p->usable_bytes));
    require(p->unknown_share <= 1 + 1e-9);
}

static bool is_close(double sum, double whole_value)
{
    return fabs(sum - whole_value) <= 1e-3 * fabs(whole_value) + 1e-6;
}

static void check_explanation(const mdot_explanation *e, const mdot_prediction *p)
{
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    require(mdot_explanation_get_info(e, &info) == MDOT_OK);
    const double times[] = {info.forward_ms,   info.data_gradient_ms, info.weight_gradient_ms,
                            info.optimizer_ms, info.host_ms,          info.communication_ms,
                            info.idle_ms,      info.data_ms};
    double sum = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        require(isfinite(times[i]) && times[i] >= 0);
        sum += times[i];
    }
    require(is_close(sum, info.step_ms) && is_close(info.step_ms, p->step_ms));
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_operator_time t = MDOT_INIT(mdot_operator_time);
        require(mdot_explanation_get_operator(e, i, &t) == MDOT_OK);
        const double parts[] = {t.forward_ms,   t.data_gradient_ms, t.weight_gradient_ms, t.optimizer_ms,
                                t.weight_bytes, t.gradient_bytes,   t.optimizer_bytes,    t.activation_bytes};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) require(isfinite(parts[k]) && parts[k] >= 0);
    }
}

/* The same answers, whichever call gave them. */
static void compare(const mdot_prediction *single, const mdot_prediction *other)
{
    require(single->status == other->status);
    if (single->status != MDOT_OK) return;
    require(single->step_ms == other->step_ms && single->peak_memory_bytes == other->peak_memory_bytes);
    require(single->warnings == other->warnings && single->energy_joules == other->energy_joules);
}

static int predict(predict_fixture *f, const mdot_job *job, const mdot_configuration *c)
{
    int count = 0;
    mdot_prediction single[CONFIGURATIONS], many[CONFIGURATIONS];
    for (size_t i = 0; i < CONFIGURATIONS; i++) {
        mdot_error err = {0};
        mdot_explanation *explanation = NULL;
        single[i] = many[i] = (mdot_prediction)MDOT_INIT(mdot_prediction);
        single[i].status = mdot_predict(f->context, job, &c[i], &single[i], &err);
        require(single[i].status == MDOT_OK || err.message[0] != '\0');
        if (single[i].status == MDOT_OK) check(&single[i]);
        count += single[i].status == MDOT_OK;
        mdot_status explained = mdot_explain(f->context, job, &c[i], &explanation, &err);
        require(explained == single[i].status || explained == MDOT_OUT_OF_MEMORY);
        if (explained == MDOT_OK) check_explanation(explanation, &single[i]);
        mdot_explanation_destroy(explanation);
    }
    mdot_error err = {0};
    (void)mdot_sweep(f->context, job, c, CONFIGURATIONS, many, &err);
    for (size_t i = 0; i < CONFIGURATIONS; i++) compare(&single[i], &many[i]);
    mdot_encoding *encoding = NULL;
    if (mdot_encoding_create(f->context, job, &encoding, &err) != MDOT_OK) return count;
    (void)mdot_evaluate(f->context, encoding, c, CONFIGURATIONS, many, &err);
    for (size_t i = 0; i < CONFIGURATIONS; i++) compare(&single[i], &many[i]);
    mdot_encoding_destroy(encoding);
    return count;
}

int hostile_predict(const mdot_job *job, const uint8_t *drawn)
{
    source s = {drawn, drawn + HOSTILE_DRAWN_BYTES};
    mdot_configuration c[CONFIGURATIONS];
    mdot_gpu gpus[CONFIGURATIONS];
    predict_fixture *f = draw(&s) % 2 == 0 ? &whole : &pair;
    for (size_t i = 0; i < CONFIGURATIONS; i++) c[i] = draw_configuration(&s, &gpus[i]);
    return predict(f, job, c);
}
