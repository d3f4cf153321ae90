/* test_analytic_golden.c — the analytic model as a whole, on eight small networks.
 *
 * tests/golden/runtime/analytic_model.txt has named cases with formulas. The test evaluates each formula: it and the
 * value beside it equal the model's result to six digits. Each case sets all options it needs, so a new option changes
 * none. The folder's other tests explain single numbers.
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
#include "tests/support/analytic_networks.h"
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
        put_result(cases[i].name, "micro-steps", r.steps + rt_waiting_steps(&r.configuration.c));
        put_result(cases[i].name, "micro-batches in flight", r.in_flight);
    }
}

static void collect_results(void)
{
    for (int which = 0; which < ANALYTIC_NETWORKS; which++) {
        mdot_job *job = analytic_network(which);
        collect_structure(which < 4 || which == 7 ? analytic_names[0] : analytic_names[4], analytic_names[which], job);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_golden_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
