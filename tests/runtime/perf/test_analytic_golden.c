/* test_analytic_golden.c — the analytic model as a whole: what runtime/perf computes of a few networks and of random
 * configurations of them, compared with tests/golden/runtime/analytic_model.txt, to six digits. The other tests of the
 * folder say why single numbers are right. This one shows each number that a change moves.
 *
 * If MDOT_UPDATE_GOLDEN is set, the test rewrites the file: read the diff.
 */
#include "base/file.h"
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/step_time.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN MDOT_SOURCE_DIR "/tests/golden/runtime/analytic_model.txt"

/* ---- Networks ---------------------------------------------------------------------------------------------------- */

enum { MOST = 64, MOST_INPUTS = 2, HEADS = 4, EXPERTS = 8 };

typedef struct network {
    mdot_job_operator operators[MOST];
    uint32_t inputs[MOST][MOST_INPUTS];
    uint32_t count, block;
    double tokens, width;
} network;

/* Appends an operator that reads `first` and `second` (-1: none) and writes `columns` numbers for each token. */
static mdot_job_operator *put(network *n, const char *type, int first, int second, double columns)
{
    mdot_job_operator *op = &n->operators[n->count];
    *op = (mdot_job_operator){.struct_size = sizeof *op, .type = type, .known = true, .block = n->block};
    op->inputs = n->inputs[n->count];
    if (first >= 0) n->inputs[n->count][op->input_count++] = (uint32_t)first;
    if (second >= 0) n->inputs[n->count][op->input_count++] = (uint32_t)second;
    double read = 4 * n->tokens * n->width * (double)(op->input_count > 0 ? op->input_count : 1);
    for (int phase = 0; phase < 2; phase++)
        op->per_sample[phase] = (mdot_load){n->tokens * columns * (3 + phase), read, 4 * n->tokens * columns};
    op->setting[MDOT_SETTING_INPUTS] = (int64_t)op->input_count;
    n->count++;
    return op;
}

static int last(const network *n)
{
    return (int)n->count - 1;
}

/* A matmul of `count` matrices; `is_frozen` ones have no weight gradient. */
static mdot_job_operator *put_matmul(network *n, const char *type, int input, double rows, double columns, double count,
                                     bool is_frozen)
{
    mdot_job_operator *op = put(n, type, input, -1, columns);
    double parameters = rows * columns * count;
    op->setting[MDOT_SETTING_CHANNELS_IN] = (int64_t)rows;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)columns;
    op->setting[MDOT_SETTING_GROUPS] = (int64_t)count;
    op->setting[MDOT_SETTING_SIZE_IN] = op->setting[MDOT_SETTING_SIZE_OUT] = (int64_t)n->tokens;
    *(is_frozen ? &op->frozen_parameters : &op->parameters) = parameters;
    double flops = 2 * n->tokens * rows * columns;
    for (int phase = 0; phase < (is_frozen ? 2 : 3); phase++) op->per_sample[phase].flops = flops;
    if (!is_frozen)
        op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){flops, 4 * n->tokens * (rows + columns), 0};
    op->per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * parameters;
    op->per_step[MDOT_PHASE_DATA_GRADIENT].bytes_read = 4 * parameters;
    if (!is_frozen) op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * parameters;
    return op;
}

static void put_norm(network *n, const char *type, int input)
{
    mdot_job_operator *op = put(n, type, input, -1, n->width);
    op->parameters = 2 * n->width;
    op->setting[MDOT_SETTING_AXIS] = 1;
    op->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){n->width, 0, 8 * n->width};
}

static void put_attention(network *n, int input)
{
    mdot_job_operator *op = put(n, "Attention", input, -1, n->width);
    op->setting[MDOT_SETTING_HEADS] = HEADS;
    op->setting[MDOT_SETTING_HEAD_SIZE] = (int64_t)(n->width / HEADS);
    op->setting[MDOT_SETTING_QUERIES] = op->setting[MDOT_SETTING_KEYS] = (int64_t)n->tokens;
    op->per_sample[MDOT_PHASE_FORWARD].flops = n->tokens * n->tokens * (4 * n->width + 5.0 * HEADS);
    op->per_sample[MDOT_PHASE_FORWARD].bytes_read = 12 * n->tokens * n->width;
    op->per_sample[MDOT_PHASE_DATA_GRADIENT] = op->per_sample[MDOT_PHASE_FORWARD];
}

/* A table, which may have sparse gradients, two blocks of attention, a head and a loss. */
static void put_language_model(network *n, bool is_sparse, bool has_tied_head, bool is_frozen)
{
    enum { WORDS = 1000 };
    n->tokens = 96;
    n->width = 64;
    mdot_job_operator *table = put(n, "Gather", -1, -1, n->width);
    table->parameters = WORDS * n->width;
    table->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)n->width;
    table->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] =
        (mdot_load){n->tokens, 4 * n->tokens, is_sparse ? 4 * n->tokens : 0};
    if (!is_sparse) table->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * table->parameters;
    for (n->block = 1; n->block <= 2; n->block++) {
        int start = last(n);
        put_norm(n, "LayerNormalization", start);
        put_matmul(n, "Linear", last(n), n->width, 3 * n->width, 1, is_frozen)->setting[MDOT_SETTING_BIAS] = 1;
        put_attention(n, last(n));
        put_matmul(n, "Linear", last(n), n->width, n->width, 1, is_frozen);
        put(n, "Add", start, last(n), n->width);
        int middle = last(n);
        put_norm(n, "LayerNormalization", middle);
        put_matmul(n, "Linear", last(n), n->width, 4 * n->width, 1, is_frozen);
        put(n, "Gelu", last(n), -1, 4 * n->width);
        put_matmul(n, "Linear", last(n), 4 * n->width, n->width, 1, false);
        put(n, "Add", middle, last(n), n->width);
    }
    n->block = 0;
    put_norm(n, "LayerNormalization", last(n));
    mdot_job_operator *head = put_matmul(n, "Linear", last(n), n->width, WORDS, 1, false);
    if (has_tied_head) head->parameters = 0;
    put(n, "SoftmaxCrossEntropyLoss", last(n), -1, 1)->per_sample[MDOT_PHASE_FORWARD].bytes_written = 4;
}

/* Convolutions, of which some have one channel per group, with a shortcut and a head. */
static void put_images(network *n, bool is_recomputed)
{
    n->tokens = 28 * 28;
    n->width = 32;
    for (n->block = 1; n->block <= 3; n->block++) {
        int start = last(n);
        for (int k = 0; k < 2; k++) {
            mdot_job_operator *op = put_matmul(n, "Conv", last(n), n->width, k == 0 ? n->width : 9, 1, false);
            op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)n->width;
            op->setting[MDOT_SETTING_KERNEL_H] = op->setting[MDOT_SETTING_KERNEL_W] = k == 0 ? 1 : 3;
            op->setting[MDOT_SETTING_GROUPS] = k == 0 ? 1 : (int64_t)n->width;
            put_norm(n, "BatchNormalization", last(n));
            put(n, "Relu", last(n), -1, n->width);
        }
        if (start >= 0) put(n, "Add", start, last(n), n->width);
        if (is_recomputed && n->block == 2)
            for (int i = start + 1; i < (int)n->count; i++) n->operators[i].flags = MDOT_OPERATOR_RECOMPUTED;
    }
    n->block = 0;
    put(n, "GlobalAveragePool", last(n), -1, 1);
    put_matmul(n, "Linear", last(n), n->width, 10, 1, false)->setting[MDOT_SETTING_BIAS] = 1;
}

/* Two blocks of a router and experts. */
static void put_mixture(network *n)
{
    n->tokens = 40;
    n->width = 64;
    put_matmul(n, "Linear", -1, n->width, n->width, 1, false);
    for (n->block = 1; n->block <= 2; n->block++) {
        int start = last(n);
        put_matmul(n, "Linear", start, n->width, EXPERTS, 1, false);
        put(n, "TopK", last(n), -1, 2);
        int choice = last(n);
        put(n, "Gather", start, choice, n->width)->traits.traits = MDOT_TRAIT_PICKS;
        put_matmul(n, "MatMul", last(n), n->width, 2 * n->width, EXPERTS, false);
        put(n, "Silu", last(n), -1, 2 * n->width);
        put_matmul(n, "MatMul", last(n), 2 * n->width, n->width, EXPERTS, false);
        put(n, "Gather", choice, last(n), n->width)->traits.traits = MDOT_TRAIT_PICKS;
        put(n, "Add", start, last(n), n->width);
    }
    n->block = 0;
    put_matmul(n, "Linear", last(n), n->width, 12, 1, false);
}

static const char *const names[] = {"language", "tied", "sparse", "adapted", "images", "recomputed", "mixture", "flat"};
enum { NETWORKS = sizeof names / sizeof *names };

static mdot_job *make_network(int which)
{
    static network n;
    memset(&n, 0, sizeof n);
    if (which < 4) put_language_model(&n, which == 2, which == 1, which == 3);
    if (which == 4 || which == 5) put_images(&n, which == 5);
    if (which == 6) put_mixture(&n);
    if (which == 7) {
        put_language_model(&n, false, false, false);
        for (uint32_t i = 0; i < n.count; i++) n.operators[i].block = 0;
        n.operators[3].flags = MDOT_OPERATOR_STOPS_GRADIENT;
    }
    return predict_make_job(n.operators, n.count);
}

/* ---- Analysis ---------------------------------------------------------------------------------------------------- */

static void print_numbers(FILE *out, const char *name, const double *numbers, size_t count)
{
    fprintf(out, "  %s", name);
    for (size_t i = 0; i < count; i++) fprintf(out, " %.6g", numbers[i] == 0 ? 0 : numbers[i]); /* -0 */
    fprintf(out, "\n");
}

static void print_parts(FILE *out, const char *name, const rt_parts *p)
{
    fprintf(out, "  %s", name);
    for (int at = 0; at < RT_PIPELINE_POSITIONS; at++)
        fprintf(out, " %.6g/%.6g/%.6g/%.6g", p->all[at], p->sharded[at], p->experts[at], p->sharded_experts[at]);
    fprintf(out, "\n");
}

static void print_operators(FILE *out, const mdot_job *job)
{
    const rt_analysis *a = job->analysis;
    for (size_t i = 0; i < job->info.operator_count; i++)
        fprintf(out, "  %2zu %-24s role %d position %d expert %d cost %.6g fused %.6g group %u sharded-group %u\n", i,
                job->operators[i].type, a->sharding.role[i], a->sharding.position[i], a->sharding.experts.is_expert[i],
                a->op_costs.cost[i], a->op_costs.fused_bytes[i], a->groups.of[i], a->sharded_groups.of[i]);
}

static void print_activations(FILE *out, const mdot_job *job, const rt_activation_case *which)
{
    const rt_activations *a = rt_activations_of(&job->analysis->activations, which);
    fprintf(out, "  activations %d%d%d%d %.6g %.6g:", which->type, which->attention, which->recompute, which->loss,
            a->all, a->whole);
    for (size_t i = 0; i < a->moment_count; i++)
        fprintf(out, " %.6g/%.6g/%.4g", a->moments[i].all, a->moments[i].whole, a->moments[i].gradients);
    fprintf(out, "\n");
    double *bytes = calloc(job->info.operator_count, sizeof *bytes);
    assert_non_null(bytes);
    assert_true(rt_shard_activations(job, &job->analysis->sharding, job->analysis->totals.logits, which, 2, bytes));
    print_numbers(out, "  of-operators", bytes, job->info.operator_count);
    free(bytes);
}

static void print_analysis(FILE *out, const mdot_job *job)
{
    const rt_analysis *a = job->analysis;
    const rt_sharding *s = &a->sharding;
    const rt_job_totals *t = &a->totals;
    const rt_update_parts *u = &a->update_parts;
    print_operators(out, job);
    fprintf(out, "  sharding %llu %u experts %llu %u heavier %d\n", (unsigned long long)s->common, s->summed_count,
            (unsigned long long)s->experts.common_count, s->experts.exchange_count, s->heavier_end);
    print_numbers(out, "bytes",
                  (const double[]){s->summed_forward_bytes, s->summed_backward_bytes, s->experts.exchanged_bytes,
                                   s->border_bytes, s->sparse.parameters, s->sparse.picked, s->largest_block_parameters,
                                   s->largest_block_experts},
                  8);
    print_parts(out, "parameters", &s->parameters);
    print_parts(out, "frozen", &s->frozen);
    print_parts(out, "tied", &s->tied);
    print_parts(out, "frozen-tied", &s->frozen_tied);
    print_parts(out, "half", &s->half_parameters);
    print_parts(out, "factored", &u->factored);
    print_parts(out, "matrices", &u->matrices);
    print_parts(out, "orthogonalisation", &u->orthogonalisation);
    print_parts(out, "frozen-matmuls", &u->frozen_matmuls);
    print_numbers(out, "largest", (const double[]){u->largest, u->largest_matrix, u->largest_frozen, u->tensors}, 4);
    fprintf(out, "  totals logits %zu attention %d recomputed %d convolutional %d type %u lacks %d\n", t->logits,
            t->has_attention, t->is_recomputed, t->is_convolutional, t->highest_type_id, t->lacks_type_id);
    print_numbers(out, "sums",
                  (const double[]){t->flops_per_sample, t->cost, t->cost_without_type_id, t->attention_count,
                                   t->attention_flops, t->key_value_bytes},
                  6);
    fprintf(out, "  digest %016llx shares", (unsigned long long)a->identity.digest);
    for (int c = 0; c < RT_WORK_CLASSES; c++)
        if (a->identity.share[c] > 0) fprintf(out, " %d:%.4g", c, (double)a->identity.share[c]);
    fprintf(out, "\n");
    static const rt_activation_case cases[] = {
        {RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_FP32, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_NOTHING, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_AMP, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_BLOCKS, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_AMP, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_SELECTIVE, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_BF16, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_SELECTIVE, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_BF16, MDOT_ATTENTION_EAGER, MDOT_RECOMPUTE_BLOCKS, MDOT_LOSS_WHOLE, false},
        {RT_ACTIVATION_FP32, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, MDOT_LOSS_CHUNKED, false},
        {RT_ACTIVATION_AMP, MDOT_ATTENTION_FLASH, MDOT_RECOMPUTE_NOTHING, MDOT_LOSS_FUSED, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].loss == MDOT_LOSS_WHOLE || t->logits > 0) print_activations(out, job, &cases[i]);
}

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Few options at a time, because most combinations are refused. Prints them. */
static mdot_configuration draw_configuration(char *text, size_t capacity)
{
    static const char *const gpus[] = {"A100", "T4", "H100", "B200", "V100", "RTX 4090"};
    mdot_configuration c = {.struct_size = sizeof c, .batch = 2 << draw(5), .gpu = gpus[draw(6)]};
    size_t used = (size_t)snprintf(text, capacity, "gpu=%s batch=%d", c.gpu, (int)c.batch);
    for (uint32_t left = 2 + draw(6); left > 0; left--) {
        const rt_option *o = &rt_options[draw(RT_OPTION_COUNT)];
        if (o->section == RT_SECTION_JOB || o->kind == RT_KIND_VERSION || o->kind == RT_KIND_GPU) continue;
        double value = o->kind == RT_KIND_COUNT ? 1u << draw(3)
                       : o->kind == RT_KIND_REAL
                           ? (o == &rt_options[RT_OPTION_power_limit] ? 60 + draw(200) : 1 + draw(50))
                           : draw((uint32_t)o->most + 1);
        if (o == &rt_options[RT_OPTION_gpu_count]) value = 1 << draw(4);
        rt_option_set(&c, o, value);
        if (used < capacity) used += (size_t)snprintf(text + used, capacity - used, " %s=%g", o->field, value);
    }
    return c;
}

static void print_memory(FILE *out, const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_memory m = rt_measure_memory(job, r);
    rt_reserved reserved = rt_reserve_memory(job, r, &m);
    rt_memory_interval within = rt_memory_within(job, &m);
    print_numbers(out, "memory",
                  (const double[]){m.weights, m.gradients, m.optimizer, m.activations, m.pass_activations,
                                   m.half_weights, m.pass, m.flat, reserved.rounding, reserved.context,
                                   reserved.workspace, reserved.collectives, (double)rt_sum_reserved(&m, &reserved),
                                   (double)within.lower_bytes, (double)within.upper_bytes, rt_offloaded_bytes(job, r)},
                  16);
}

static void print_time(FILE *out, const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_roofline roofline = rt_roofline_of(job, r);
    rt_roofline_terms terms = rt_step_roofline_terms(job, r);
    rt_optimizer_memory optimizer = rt_optimizer_memory_of(job, r);
    double step_ms = 3 * (terms.compute_ms + terms.memory_ms), update_ms = rt_optimizer_ms(job, r, &r->shard);
    double operators[MDOT_PHASE_COUNT] = {0};
    for (size_t i = 0; i < job->info.operator_count; i++) {
        double of[MDOT_PHASE_COUNT];
        rt_operator_roofline(job, i, r, of);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) operators[phase] += of[phase] * (double)(i + 1);
    }
    print_numbers(out, "time",
                  (const double[]){
                      roofline.forward_ms, roofline.backward_ms, roofline.optimizer_ms, terms.compute_ms,
                      terms.memory_ms, terms.masked_ms, rt_communication_ms(job, r, roofline.backward_ms),
                      rt_host_memory_ms(job, r, roofline.forward_ms, roofline.backward_ms), update_ms,
                      rt_launch_ms(job, r, update_ms), rt_power_slowdown(&r->configuration, &terms, step_ms),
                      rt_average_watts(&r->configuration, &terms, step_ms), operators[0], operators[1], operators[2]},
                  15);
    print_numbers(out, "resolved",
                  (const double[]){r->steps, r->micro_steps, r->in_flight, r->sequence, r->replicated, r->shard.tensor,
                                   r->shard.experts, r->shard.of[0], r->shard.of[1], r->shard.of[2], optimizer.state,
                                   optimizer.update, optimizer.flat,
                                   rt_updated_parameters(&r->configuration.c, job, &r->shard)},
                  14);
}

static void print_configurations(FILE *out, const mdot_job *job, size_t count)
{
    rt_gpu_names gpus = {0};
    for (size_t tries = 0; count > 0 && tries < 100000; tries++) {
        char text[512];
        rt_configuration configuration;
        rt_resolved_configuration resolved;
        mdot_configuration c = draw_configuration(text, sizeof text);
        if (rt_configuration_read(&c, 0, &gpus, &configuration, NULL) != MDOT_OK) continue;
        if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) continue;
        rt_resolve(job, &configuration, &resolved);
        fprintf(out, "%s\n", text);
        print_memory(out, job, &resolved);
        print_time(out, job, &resolved);
        count--;
    }
    assert_int_equal(count, 0);
}

static void numbers_are_those_of_the_golden_file(void **state)
{
    (void)state;
    enum { CONFIGURATIONS = 48 };
    char *made = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    assert_non_null(out);
    for (int which = 0; which < NETWORKS; which++) {
        mdot_job *job = make_network(which);
        random_state = (uint64_t)which + 1;
        fprintf(out, "== %s\n", names[which]);
        print_analysis(out, job);
        print_configurations(out, job, CONFIGURATIONS);
        mdot_job_destroy(job);
    }
    fclose(out);
    if (getenv("MDOT_UPDATE_GOLDEN") != NULL) assert_int_equal(bs_write_file(GOLDEN, made, size, NULL), MDOT_OK);
    unsigned char *wanted = NULL;
    size_t wanted_size = 0;
    mdot_error err = {0};
    if (bs_read_file(GOLDEN, &wanted, &wanted_size, &err) != MDOT_OK) fail_msg("%s", err.message);
    size_t line = 1, start = 0;
    for (size_t i = 0; i < size && i < wanted_size && made[i] == (char)wanted[i]; i++)
        if (made[i] == '\n') line++, start = i + 1;
    if (size != wanted_size || memcmp(made, wanted, size) != 0)
        fail_msg("line %zu is \"%.*s\"", line, (int)strcspn(made + start, "\n"), made + start);
    free(wanted);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_those_of_the_golden_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
