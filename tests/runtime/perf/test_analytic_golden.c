/* test_analytic_golden.c — the analytic model as a whole, on eight small networks.
 *
 * tests/golden/runtime/analytic_model.txt has named cases with formulas. The test evaluates each formula: it and the
 * value beside it equal the model's result to six digits. Each case sets all options it needs, so a new option changes
 * none. Random configurations have properties instead. The folder's other tests explain single numbers.
 *
 * If MDOT_UPDATE_GOLDEN is set, the test rewrites the file's values and keeps the formulas: read the diff. */
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
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
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

static int last(const network *n) { return (int)n->count - 1; }

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

/* A table (perhaps with sparse gradients), two attention blocks, a head and a loss. */
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

/* Convolutions (some with one channel per group), a shortcut and a head. */
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

/* ---- Results ----------------------------------------------------------------------------------------------------- */

enum { MAX_CASES = 256, MAX_NAME = 96 };

typedef struct result {
    char name[MAX_NAME];
    double value;
} result;

static result results[MAX_CASES];
static size_t result_count;

static size_t find_result(const char *name, size_t length)
{
    for (size_t i = 0; i < result_count; i++)
        if (strlen(results[i].name) == length && strncmp(results[i].name, name, length) == 0) return i;
    return result_count;
}

static void put_result(const char *group, const char *name, double value)
{
    assert_compare(result_count, <, MAX_CASES);
    result *r = &results[result_count++];
    assert_compare(snprintf(r->name, sizeof r->name, "%s, %s", group, name), <, MAX_NAME);
    r->value = value;
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(a); }

/* Leaves out a result equal to an earlier group's (`base`). */
static void put_difference(const char *base, const char *group, const char *name, double value)
{
    char other[MAX_NAME];
    int length = snprintf(other, sizeof other, "%s, %s", base, name);
    assert_compare(length, <, MAX_NAME);
    size_t i = find_result(other, (size_t)length);
    if (!is_near(i < result_count ? results[i].value : 0, value)) put_result(group, name, value);
}

static double all_parts(const rt_parts *p)
{
    return p->all[RT_PIPELINE_BEFORE] + p->all[RT_PIPELINE_BLOCKS] + p->all[RT_PIPELINE_AFTER];
}

static void collect_structure(const char *base, const char *group, const mdot_job *job)
{
    static const rt_activation_case flash = {.attention = MDOT_ATTENTION_FLASH};
    const rt_analysis *a = job->analysis;
    const rt_sharding *s = &a->sharding;
    const rt_activations *activations = rt_activations_of(&a->activations, &flash);
    const result found[] = {
        {"activations", activations->all},
        {"replicated activations", activations->whole},
        {"trained parameters", all_parts(&s->parameters)},
        {"frozen parameters", all_parts(&s->frozen)},
        {"tied parameters", all_parts(&s->tied)},
        {"picked elements", s->sparse.picked},
        {"parameters before the blocks", s->parameters.all[RT_PIPELINE_BEFORE]},
        {"parameters behind the blocks", s->parameters.all[RT_PIPELINE_AFTER]},
        {"largest block", s->largest_block_parameters},
        {"common divisor", (double)s->common},
        {"summed forward bytes", s->summed_forward_bytes},
        {"summed backward bytes", s->summed_backward_bytes},
        {"border bytes", s->border_bytes},
        {"exchanged bytes of experts", s->experts.exchanged_bytes},
        {"factored moments", all_parts(&a->update_parts.factored)},
        {"FLOPs", a->totals.flops_per_sample},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        put_difference(base, group, found[i].name, found[i].value);
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_gpu_names gpus = {0};
    rt_configuration configuration;
    rt_resolved_configuration resolved;
    mdot_error err = {0};
    c.struct_size = sizeof c;
    if (c.batch == 0) c.batch = 8;
    if (c.gpu == NULL) c.gpu = "A100";
    if (rt_configuration_read(&c, 0, &gpus, &configuration, &err) != MDOT_OK ||
        rt_configuration_check(&configuration, job, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

static void collect_state(const char *group, const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration r = resolve(job, c);
    rt_memory m = rt_measure_memory(job, &r);
    put_result(group, "weights", m.weights);
    put_result(group, "optimizer state", rt_optimizer_memory_of(job, &r).state);
}

static void collect_states(const mdot_job *job)
{
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP_BF16, MDOT_PRECISION_BF16,
                                                MDOT_PRECISION_MIXED_BF16, MDOT_PRECISION_FP8};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++)
        collect_state(
            rt_precision_names[precisions[i]], job,
            (mdot_configuration){.precision = precisions[i], .gpu = "B200", .optimizer = MDOT_OPTIMIZER_ADAMW});
    static const mdot_optimizer optimizers[] = {
        MDOT_OPTIMIZER_SGD,       MDOT_OPTIMIZER_ADAMW, MDOT_OPTIMIZER_SGD_PLAIN, MDOT_OPTIMIZER_ADAM8BIT,
        MDOT_OPTIMIZER_ADAFACTOR, MDOT_OPTIMIZER_LION,  MDOT_OPTIMIZER_MUON};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        const char *name = rt_optimizer_names[optimizers[i]];
        rt_resolved_configuration r =
            resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_FP32, .optimizer = optimizers[i]});
        put_result(name, "state", rt_optimizer_memory_of(job, &r).state);
        put_result(name, "update ms", rt_optimizer_ms(job, &r, &r.shard));
    }
    static const struct {
        const char *name;
        mdot_configuration c;
    } cases[] = {
        {"ZeRO stage 1", {.gpu_count = 8, .zero_stage = 1, .optimizer = MDOT_OPTIMIZER_ADAMW}},
        {"ZeRO stage 2", {.gpu_count = 8, .zero_stage = 2, .optimizer = MDOT_OPTIMIZER_ADAMW}},
        {"ZeRO stage 3", {.gpu_count = 8, .zero_stage = 3, .optimizer = MDOT_OPTIMIZER_ADAMW}},
        {"tensor parallelism", {.tensor_parallel = 2, .optimizer = MDOT_OPTIMIZER_ADAMW}},
        {"pipeline", {.pipeline_parallel = 2, .optimizer = MDOT_OPTIMIZER_ADAMW}},
        {"moving average", {.ema = 1, .optimizer = MDOT_OPTIMIZER_ADAMW}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) collect_state(cases[i].name, job, cases[i].c);
}

static void collect_times(const mdot_job *job)
{
    static const struct {
        const char *name;
        mdot_configuration c;
    } cases[] = {
        {"fp32", {.precision = MDOT_PRECISION_FP32}},
        {"bf16", {.precision = MDOT_PRECISION_BF16}},
        {"two passes", {.precision = MDOT_PRECISION_FP32, .accumulate = 2}},
        {"inference", {.precision = MDOT_PRECISION_FP32, .mode = MDOT_MODE_INFERENCE}},
        {"tensor parallelism", {.precision = MDOT_PRECISION_FP32, .tensor_parallel = 2}},
        {"data parallelism", {.precision = MDOT_PRECISION_FP32, .gpu_count = 8}},
        {"ZeRO stage 3", {.precision = MDOT_PRECISION_FP32, .gpu_count = 8, .zero_stage = 3}},
        {"offloading", {.precision = MDOT_PRECISION_FP32, .offload = MDOT_OFFLOAD_OPTIMIZER}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_resolved_configuration r = resolve(job, cases[i].c);
        rt_roofline_terms terms = rt_step_roofline_terms(job, &r);
        put_result(cases[i].name, "computation ms", terms.compute_ms);
        if (r.configuration.c.gpu_count > 1) put_result(cases[i].name, "exchange ms", rt_communication_ms(job, &r, 0));
        if (r.configuration.c.offload != MDOT_OFFLOAD_NOTHING)
            put_result(cases[i].name, "host ms", rt_host_memory_ms(job, &r, 0, 0));
    }
}

static void collect_pipelines(const mdot_job *job)
{
    static const struct {
        const char *name;
        mdot_configuration c;
    } cases[] = {
        {"4 micro-batches", {.pipeline_parallel = 2, .micro_batches = 4}},
        {"4 micro-batches of 2 passes", {.pipeline_parallel = 2, .micro_batches = 4, .accumulate = 2}},
        {"a zero-bubble schedule", {.pipeline_parallel = 2, .micro_batches = 4, .schedule = MDOT_SCHEDULE_ZERO_BUBBLE}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_resolved_configuration r = resolve(job, cases[i].c);
        put_result(cases[i].name, "micro-steps", r.micro_steps);
        put_result(cases[i].name, "micro-batches in flight", r.in_flight);
    }
}

static void collect_results(void)
{
    for (int which = 0; which < NETWORKS; which++) {
        mdot_job *job = make_network(which);
        collect_structure(which < 4 || which == 7 ? names[0] : names[4], names[which], job);
        if (which == 0) collect_states(job);
        if (which == 0) collect_times(job);
        if (which == 0) collect_pipelines(job);
        mdot_job_destroy(job);
    }
}

/* ---- Golden file ------------------------------------------------------------------------------------------------- */

/* A formula has numbers, variables of one capital letter, + - * / ^, parentheses and sqrt(). */
typedef struct formula {
    const char *text;
    double variables[26];
} formula;

static double read_sum(formula *f);

static void skip_blanks(formula *f)
{
    while (*f->text == ' ') f->text++;
}

static double read_factor(formula *f)
{
    skip_blanks(f);
    double value = 0;
    if (strncmp(f->text, "sqrt", 4) == 0) {
        f->text += 4;
        value = sqrt(read_factor(f));
    } else if (*f->text == '(') {
        f->text++;
        value = read_sum(f);
        if (*f->text++ != ')') fail_msg("a parenthesis is missing before \"%s\"", f->text);
    } else if (*f->text >= 'A' && *f->text <= 'Z') {
        value = f->variables[*f->text++ - 'A'];
    } else {
        char *end;
        value = strtod(f->text, &end);
        if (end == f->text) fail_msg("\"%s\" is no number", f->text);
        f->text = end;
    }
    skip_blanks(f);
    if (*f->text != '^') return value;
    f->text++;
    return pow(value, read_factor(f));
}

static double read_product(formula *f)
{
    double value = read_factor(f);
    while (*f->text == '*' || *f->text == '/') {
        bool divides = *f->text++ == '/';
        double factor = read_factor(f);
        value = divides ? value / factor : value * factor;
    }
    return value;
}

static double read_sum(formula *f)
{
    double value = read_product(f);
    while (*f->text == '+' || *f->text == '-') {
        bool subtracts = *f->text++ == '-';
        double term = read_product(f);
        value += subtracts ? -term : term;
    }
    return value;
}

static double evaluate(formula *f, const char *text)
{
    f->text = text;
    double value = read_sum(f);
    if (*f->text != '\0') fail_msg("\"%s\" follows a formula", f->text);
    return value;
}

/* Compares "NAME: VALUE = FORMULA" with the results, and writes the line with the model's value. Returns false if they
 * differ. */
static bool check_line(const char *line, formula *f, bool *seen, FILE *out)
{
    const char *colon = strstr(line, ": "), *equals = colon != NULL ? strstr(colon, " = ") : NULL;
    if (equals == NULL) fail_msg("\"%s\" lacks a value or a formula", line);
    size_t i = find_result(line, (size_t)(colon - line));
    if (i == result_count) {
        print_error("expected \"%s\", and the test lacks such a result\n", line);
        return false;
    }
    seen[i] = true;
    double got = results[i].value, calculated = evaluate(f, equals + 3);
    fprintf(out, "%s: %.9g%s\n", results[i].name, got, equals);
    if (is_near(got, strtod(colon + 2, NULL)) && is_near(got, calculated)) return true;
    print_error("expected \"%s\"\n     got %.9g, and the formula is %.9g\n", line, got, calculated);
    return false;
}

static void results_are_those_of_the_golden_file(void **state)
{
    (void)state;
    unsigned char *wanted = NULL;
    size_t wanted_size = 0, different = 0;
    bool seen[MAX_CASES] = {false};
    char *made = NULL, *line, *rest;
    size_t size = 0;
    formula f = {NULL, {0}};
    mdot_error err = {0};
    collect_results();
    if (bs_read_file(GOLDEN, &wanted, &wanted_size, &err) != MDOT_OK) fail_msg("%s", err.message);
    FILE *out = open_memstream(&made, &size);
    char *text = strndup((char *)wanted, wanted_size);
    assert_non_null(out);
    assert_non_null(text);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        if (line[0] == '\0' && rest == NULL) break;
        bool defines = line[0] != '\0' && strncmp(line + 1, " = ", 3) == 0;
        if (defines) f.variables[line[0] - 'A'] = evaluate(&f, line + 4);
        if (defines || line[0] == '#' || line[0] == '\0')
            fprintf(out, "%s\n", line);
        else
            different += !check_line(line, &f, seen, out);
    }
    fclose(out);
    for (size_t i = 0; i < result_count; i++)
        if (!seen[i]) {
            print_error("\"%s: %.9g\" is missing in the golden file\n", results[i].name, results[i].value);
            different++;
        }
    if (getenv("MDOT_UPDATE_GOLDEN") != NULL) assert_int_equal(bs_write_file(GOLDEN, made, size, NULL), MDOT_OK);
    free(text);
    free(wanted);
    free(made);
    assert_int_equal(different, 0);
}

/* ---- Random configurations --------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Few options at a time, because most combinations are refused. Writes them to `text`. */
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

static bool is_count(double value) { return isfinite(value) && value >= 0; }

static const char *broken_property_of_memory(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_memory m = rt_measure_memory(job, r);
    rt_reserved reserved = rt_reserve_memory(job, r, &m);
    rt_memory_interval within = rt_memory_within(job, &m);
    double peak = (double)rt_sum_memory(&m), sum = m.weights + m.gradients + m.optimizer + m.activations;
    if (!is_count(m.weights) || !is_count(m.gradients) || !is_count(m.optimizer) || !is_count(m.activations))
        return "parts of the memory are counts";
    if (fabs(peak - sum) > 1) return "the parts of the memory add up to the peak";
    if (m.pass_activations + m.half_weights > m.activations * (1 + 1e-9) + 1) return "activations include their parts";
    if (m.pass > peak + 1) return "the pass needs at most the peak";
    double reserved_sum = reserved.rounding + reserved.context + reserved.workspace + reserved.collectives;
    if (!is_near((double)rt_sum_reserved(&m, &reserved), peak + reserved_sum)) return "reserved memory adds up";
    if (reserved.collectives > 0 && r->configuration.c.gpu_count == 1) return "one GPU has no collectives";
    if ((double)within.lower_bytes > peak || (double)within.upper_bytes < peak) return "the interval has the peak";
    if ((double)within.lower_bytes + 1 < m.weights + m.optimizer) return "the interval has weights and state";
    if (rt_offloaded_bytes(job, r) > 0 && r->configuration.c.offload_activations == 0) return "offloading is an option";
    return NULL;
}

static const char *broken_property_of_time(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_roofline roofline = rt_roofline_of(job, r);
    rt_roofline_terms terms = rt_step_roofline_terms(job, r);
    const mdot_configuration *c = &r->configuration.c;
    double passes_ms = r->steps * (roofline.forward_ms + roofline.backward_ms), update_ms = roofline.optimizer_ms;
    if (!is_count(roofline.forward_ms) || !is_count(roofline.backward_ms) || !is_count(update_ms))
        return "times are counts";
    if (update_ms != rt_optimizer_ms(job, r, &r->shard)) return "the roofline has the update's time";
    if (terms.compute_ms > (passes_ms + update_ms) * (1 + 1e-9)) return "computation takes at most the roofline";
    if (terms.memory_ms > (passes_ms + update_ms) * (1 + 1e-9)) return "traffic takes at most the roofline";
    if (terms.masked_ms > terms.compute_ms) return "masked work is part of the computation";
    double exchange_ms = rt_communication_ms(job, r, 0), hidden_ms = rt_communication_ms(job, r, passes_ms);
    if ((c->gpu_count == 1 && exchange_ms != 0) || hidden_ms > exchange_ms) return "a pass hides exchanges";
    double host_ms = rt_host_memory_ms(job, r, 0, 0), other_ms = rt_host_memory_ms(job, r, passes_ms, passes_ms);
    bool offloads = c->offload != MDOT_OFFLOAD_NOTHING || c->offload_activations != 0;
    if ((host_ms > 0 && !offloads) || other_ms > host_ms) return "a pass hides transfers";
    double step_ms = 3 * (terms.compute_ms + terms.memory_ms),
           slowdown = rt_power_slowdown(&r->configuration, &terms, step_ms);
    if (slowdown < 1 || (c->power_limit == 0 && slowdown != 1)) return "a power limit slows down";
    double limit = c->power_limit > 0 ? c->power_limit : r->configuration.gpu.watts;
    if (rt_average_watts(&r->configuration, &terms, step_ms * slowdown) > limit * (1 + 1e-6))
        return "the power limit holds";
    return NULL;
}

/* The sums over groups of equal operators equal those over operators. */
static const char *broken_property_of_operators(const mdot_job *job, const rt_resolved_configuration *r)
{
    rt_roofline roofline = rt_roofline_of(job, r);
    double forward_ms = 0, backward_ms = 0;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        double of_phase[MDOT_PHASE_COUNT];
        rt_operator_roofline(job, i, r, of_phase);
        double part = r->shard.of[job->analysis->sharding.position[i]];
        forward_ms += part * of_phase[MDOT_PHASE_FORWARD];
        backward_ms += part * (of_phase[MDOT_PHASE_DATA_GRADIENT] + of_phase[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    bool equal = is_near(forward_ms, roofline.forward_ms) && is_near(backward_ms, roofline.backward_ms);
    return equal ? NULL : "operators add up to the roofline";
}

static void configurations_have_their_properties(void **state)
{
    (void)state;
    enum { CONFIGURATIONS = 48 };
    rt_gpu_names gpus = {0};
    for (int which = 0; which < NETWORKS; which++) {
        mdot_job *job = make_network(which);
        size_t left = CONFIGURATIONS;
        random_state = (uint64_t)which + 1;
        for (size_t tries = 0; left > 0 && tries < 100000; tries++) {
            char text[512];
            rt_configuration configuration;
            rt_resolved_configuration r;
            mdot_configuration c = draw_configuration(text, sizeof text);
            if (rt_configuration_read(&c, 0, &gpus, &configuration, NULL) != MDOT_OK) continue;
            if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) continue;
            rt_resolve(job, &configuration, &r);
            const char *broken = broken_property_of_memory(job, &r);
            if (broken == NULL) broken = broken_property_of_time(job, &r);
            if (broken == NULL) broken = broken_property_of_operators(job, &r);
            if (broken != NULL) fail_msg("%s, %s: not true that %s", names[which], text, broken);
            left--;
        }
        assert_int_equal(left, 0);
        mdot_job_destroy(job);
    }
}

/* At each tensor-parallel degree, operator activations add up to the GPU's. */
static void activations_of_operators_add_up(void **state)
{
    (void)state;
    for (int which = 0; which < NETWORKS; which++) {
        mdot_job *job = make_network(which);
        double *bytes = calloc(job->info.operator_count, sizeof *bytes);
        assert_non_null(bytes);
        for (int k = 0; k < RT_ACTIVATION_TYPES * 2 * RT_RECOMPUTATIONS; k++) {
            const rt_activation_case measured = {(rt_activation_type)(k / 2 % RT_ACTIVATION_TYPES),
                                                 k % 2 == 0 ? MDOT_ATTENTION_FLASH : MDOT_ATTENTION_EAGER,
                                                 (mdot_recompute)(k / 2 / RT_ACTIVATION_TYPES), MDOT_LOSS_WHOLE, false};
            const rt_activations *a = rt_activations_of(&job->analysis->activations, &measured);
            for (double tensor = 1; tensor <= 4; tensor *= 2) {
                double sum = 0;
                assert_true(rt_shard_activations(job, &job->analysis->sharding, job->analysis->totals.logits, &measured,
                                                 tensor, bytes));
                for (size_t i = 0; i < job->info.operator_count; i++) sum += bytes[i];
                double expected = a->whole + (a->all - a->whole) / tensor;
                if (tensor == 1 && !is_near(sum, expected)) fail_msg("%s: %g, not %g", names[which], sum, expected);
                if (sum > a->all * (1 + 1e-9)) fail_msg("%s: a shard has more than the job", names[which]);
            }
        }
        free(bytes);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_golden_file),
        cmocka_unit_test(configurations_have_their_properties),
        cmocka_unit_test(activations_of_operators_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
