/* test_freeze.c — jobs with frozen parameters: pattern matching, and the remaining gradients, memory and files. */
#include "runtime/job/job_model.h"
#include "runtime/perf/peak_memory.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 4 };

static const char *const modules[COUNT] = {"model.embed", "model.layers.0.query", "model.layers.0.query.lora_A",
                                           "model.head"};

/* A chain with four matmuls: 100, 200, 10 and 50 parameters, each with all phases. */
static mdot_job *make_job(bool named)
{
    static const double parameters[COUNT] = {100, 200, 10, 50};
    static const uint32_t before[COUNT] = {0, 0, 1, 2};
    mdot_job_operator operators[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i], .type = "Linear", .known = true};
        operators[i].parameters = parameters[i];
        operators[i].inputs = &before[i];
        operators[i].input_count = i > 0;
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        operators[i].module = named ? modules[i] : NULL;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            operators[i].per_sample[phase] = (mdot_load){10, 1000, 1000};
    }
    return predict_make_job(operators, COUNT);
}

static mdot_status freeze(const mdot_job *job, const char *frozen, const char *trained, mdot_job **out, mdot_error *err)
{
    const mdot_job_freezing f = {sizeof f, &frozen, frozen != NULL, &trained, trained != NULL};
    return mdot_job_freeze(job, &f, out, err);
}

/* `result` has one letter per operator, for example "ftff": f frozen, t trained. */
static void expect(const char *frozen, const char *trained, const char *result)
{
    mdot_job *job = make_job(true), *after = NULL;
    mdot_error err = {0};
    if (freeze(job, frozen, trained, &after, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < COUNT; i++) {
        bool is_frozen = result[i] == 'f';
        const mdot_job_operator *op = &after->operators[i];
        if ((op->parameters == 0) != is_frozen) fail_msg("%s, %s: operator %zu", frozen, trained, i);
        assert_compare(op->parameters + op->frozen_parameters, ==, job->operators[i].parameters);
        assert_compare(op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops == 0, ==, is_frozen);
        assert_compare(op->per_sample[MDOT_PHASE_FORWARD].flops, ==, 10);
    }
    assert_compare(after->info.parameters + after->info.frozen_parameters, ==, job->info.parameters);
    mdot_job_destroy(after);
    mdot_job_destroy(job);
}

static void patterns_match_modules_and_their_submodules(void **state)
{
    (void)state;
    expect("model.embed", NULL, "fttt");
    expect("model.layers", NULL, "tfft");
    expect("model", "model.head", "ffft");
    expect(NULL, "*.lora_?", "fftf");
    expect(NULL, "*lora*", "fftf");
    expect("*.query", "*.lora_A", "tftt");
    expect("model.lay?rs.*", NULL, "tfft");
}

/* An operator computes the input gradient only if an earlier operator is trained. */
static void frozen_leading_layers_have_no_backward_pass(void **state)
{
    (void)state;
    mdot_job *job = make_job(true), *lora = NULL, *embedding = NULL;
    assert_int_equal(freeze(job, NULL, "*.lora_A", &lora, NULL), MDOT_OK);
    static const double of_lora[COUNT] = {0, 0, 0, 10}; /* the adapter's input needs no gradient */
    for (size_t i = 0; i < COUNT; i++)
        assert_compare(lora->operators[i].per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, of_lora[i]);
    assert_int_equal(freeze(job, "model.layers", NULL, &embedding, NULL), MDOT_OK);
    for (size_t i = 1; i < COUNT; i++)
        assert_compare(embedding->operators[i].per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, 10);
    mdot_job_destroy(job);
    mdot_job_destroy(lora);
    mdot_job_destroy(embedding);
}

/* The weights remain in memory, their gradients and Adam's state disappear. Frozen matmuls save no operand. */
static void frozen_parameters_need_memory_for_weights_only(void **state)
{
    (void)state;
    mdot_job *job = make_job(true), *lora = NULL;
    assert_int_equal(freeze(job, NULL, "*.lora_A", &lora, NULL), MDOT_OK);
    rt_configuration configuration = {.c = {.batch = 2, .accumulate = 2, .optimizer = MDOT_OPTIMIZER_ADAM},
                                      .gpu = {.pcie_gbps = 31.5}};
    rt_resolved_configuration of_job, of_lora;
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &of_job);
    rt_resolve(lora, &configuration, &of_lora);
    rt_memory before = rt_measure_memory(job, &of_job), after = rt_measure_memory(lora, &of_lora);
    assert_compare(before.weights, ==, 4 * 360);
    assert_compare(after.weights, ==, 4 * 360);
    assert_compare(before.gradients, ==, 4 * 360);
    assert_compare(after.gradients, ==, 4 * 10);
    assert_compare(before.optimizer, ==, 8 * 360);
    assert_compare(after.optimizer, ==, 8 * 10);
    assert_compare(after.activations, <, before.activations);
    mdot_job_destroy(job);
    mdot_job_destroy(lora);
}

/* A tied head has no own parameters, but computes a gradient for the table. Operators behind it then pass gradients
 * back, even if everything before it is frozen. */
static void a_tied_layer_trains_the_weights_that_it_shares(void **state)
{
    (void)state;
    static const uint32_t before[3] = {0, 0, 1};
    static const char *const names[3] = {"table", "head", "tail"}, *const frozen = "t*";
    mdot_job_operator operators[3];
    for (int i = 0; i < 3; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = "Linear", .known = true};
        operators[i].module = names[i];
        operators[i].parameters = i == 1 ? 0 : 100;
        operators[i].inputs = &before[i];
        operators[i].input_count = i > 0;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) operators[i].per_sample[phase] = (mdot_load){10, 20, 30};
    }
    const mdot_job_freezing f = {.struct_size = sizeof f, .frozen = &frozen, .frozen_count = 1};
    mdot_error err = {0};
    if (mdot_operators_freeze(&f, operators, 3, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_compare(operators[0].frozen_parameters, ==, 100);
    assert_compare(operators[2].frozen_parameters, ==, 100);
    assert_compare(operators[1].per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, ==, 10);
    assert_compare(operators[1].per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, 0); /* nothing before it is trained */
    assert_compare(operators[2].per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, 10);
    assert_compare(operators[2].per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, ==, 0);
    /* Behind an operator that stops gradients, nothing is computed. */
    operators[1].flags = MDOT_OPERATOR_STOPS_GRADIENT;
    assert_int_equal(mdot_operators_freeze(&f, operators, 3, &err), MDOT_OK);
    assert_compare(operators[2].per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, 0);
}

static void files_keep_frozen_parameters(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[300];
    snprintf(path, sizeof path, "%s/lora.job", folder);
    mdot_job *job = make_job(true), *lora = NULL, *read = NULL;
    assert_int_equal(freeze(job, NULL, "*.lora_A", &lora, NULL), MDOT_OK);
    assert_int_equal(mdot_job_save(lora, path, NULL), MDOT_OK);
    assert_int_equal(mdot_job_load(path, &read, NULL), MDOT_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_compare(read->operators[i].frozen_parameters, ==, lora->operators[i].frozen_parameters);
    assert_compare(read->info.frozen_parameters, ==, 350);
    mdot_job_destroy(job);
    mdot_job_destroy(lora);
    mdot_job_destroy(read);
    process_remove_folder(folder);
}

static void impossible_requests_are_refused(void **state)
{
    (void)state;
    mdot_job *job = make_job(true), *nameless = make_job(false), *out = NULL;
    mdot_error err = {0};
    assert_int_equal(freeze(nameless, "model", NULL, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "needs module names"));
    assert_int_equal(freeze(job, "modle", NULL, &out, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, "\"modle\""));
    assert_int_equal(freeze(job, NULL, "lora", &out, &err), MDOT_NOT_FOUND);
    assert_int_equal(freeze(job, "model", NULL, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "freeze every parameter"));
    assert_int_equal(freeze(job, NULL, NULL, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_freeze(job, NULL, &out, &err), MDOT_INVALID_ARGUMENT);
    assert_null(out);
    mdot_job_destroy(job);
    mdot_job_destroy(nameless);
}

/* Operators frozen before the job is created, without names in the job, equal those in a frozen job. */
static void operators_can_be_frozen_before_the_job_is_created(void **state)
{
    (void)state;
    static const char *const lora = "*.lora_A";
    const mdot_job_freezing f = {.struct_size = sizeof f, .trained = &lora, .trained_count = 1};
    mdot_job *job = make_job(true), *frozen = NULL;
    assert_int_equal(mdot_job_freeze(job, &f, &frozen, NULL), MDOT_OK);
    mdot_job_operator operators[COUNT];
    for (size_t i = 0; i < COUNT; i++) operators[i] = job->operators[i];
    assert_int_equal(mdot_operators_freeze(&f, operators, COUNT, NULL), MDOT_OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_compare(operators[i].parameters, ==, frozen->operators[i].parameters);
        assert_compare(operators[i].frozen_parameters, ==, frozen->operators[i].frozen_parameters);
        assert_memory_equal(operators[i].per_sample, frozen->operators[i].per_sample, sizeof operators[i].per_sample);
    }
    mdot_job_destroy(job);
    mdot_job_destroy(frozen);
}

static void operators_stay_unchanged_if_freezing_fails(void **state)
{
    (void)state;
    static const char *const all = "*";
    const mdot_job_freezing f = {.struct_size = sizeof f, .frozen = &all, .frozen_count = 1};
    mdot_job *job = make_job(true);
    mdot_job_operator operators[COUNT];
    for (size_t i = 0; i < COUNT; i++) operators[i] = job->operators[i];
    assert_int_equal(mdot_operators_freeze(&f, operators, COUNT, NULL), MDOT_INVALID_ARGUMENT);
    assert_memory_equal(operators, job->operators, sizeof operators);
    mdot_job_destroy(job);
}

static void operators_that_read_later_ones_are_refused(void **state)
{
    (void)state;
    static const char *const lora = "*.lora_A";
    static const uint32_t later = COUNT - 1;
    const mdot_job_freezing f = {.struct_size = sizeof f, .trained = &lora, .trained_count = 1};
    mdot_job *job = make_job(true);
    mdot_job_operator operators[COUNT], before[COUNT];
    mdot_error err = {0};
    for (size_t i = 0; i < COUNT; i++) operators[i] = job->operators[i];
    operators[COUNT - 1].inputs = &later; /* itself */
    operators[COUNT - 1].input_count = 1;
    memcpy(before, operators, sizeof before);
    assert_int_equal(mdot_operators_freeze(&f, operators, COUNT, &err), MDOT_INVALID_ARGUMENT);
    assert_compare(err.message[0], !=, '\0');
    assert_memory_equal(operators, before, sizeof before);
    mdot_job_destroy(job);
}

/* ---- Patterns ---------------------------------------------------------------------------------------------------- */

/* A direct implementation of the header's definition, letter by letter. */
static bool fits_whole(const char *pattern, const char *name, size_t length)
{
    if (*pattern == '\0') return length == 0;
    if (*pattern == '*')
        return fits_whole(pattern + 1, name, length) || (length > 0 && fits_whole(pattern, name + 1, length - 1));
    return length > 0 && (*pattern == '?' || *pattern == *name) && fits_whole(pattern + 1, name + 1, length - 1);
}

static bool fits_module(const char *pattern, const char *module)
{
    for (size_t i = 0; module[i] != '\0'; i++)
        if (module[i] == '.' && fits_whole(pattern, module, i)) return true;
    return fits_whole(pattern, module, strlen(module));
}

static mdot_job *make_job_of(const char *module, size_t count)
{
    mdot_job_operator *operators = calloc(count, sizeof *operators);
    assert_non_null(operators);
    for (size_t i = 0; i < count; i++)
        operators[i] = (mdot_job_operator){
            .struct_size = sizeof *operators, .type = "Linear", .known = true, .module = module, .parameters = 10};
    mdot_job *job = predict_make_job(operators, count);
    free(operators);
    return job;
}

static void random_patterns_match_as_documented(void **state)
{
    (void)state;
    enum { CASES = 20000, LONGEST = 9 };
    uint32_t seed = 1;
    int fitted = 0;
    for (int i = 0; i < CASES; i++) {
        char module[LONGEST + 1] = "", pattern[LONGEST + 1] = "";
        for (int part = 0; part < 2; part++) {
            static const char *const letters[] = {"aab.", "ab.?**"};
            char *out = part == 0 ? module : pattern;
            size_t length = (seed = seed * 1664525 + 1013904223) >> 16 & 7;
            for (size_t k = 0; k < length; k++)
                out[k] = letters[part][((seed = seed * 1664525 + 1013904223) >> 16) % strlen(letters[part])];
        }
        mdot_job *job = make_job_of(module, 1), *out = NULL;
        mdot_status status = freeze(job, pattern, NULL, &out, NULL); /* INVALID_ARGUMENT, because all parameters are
                                                                      * frozen */
        bool fits = fits_module(pattern, module);
        if (status != (fits ? MDOT_INVALID_ARGUMENT : MDOT_NOT_FOUND)) fail_msg("\"%s\" on \"%s\"", pattern, module);
        fitted += fits;
        mdot_job_destroy(job);
    }
    assert_in_range(fitted, CASES / 10, CASES / 2);
}

/* The test would not end if the work grew with the square of a name's length, or with this length times the operator
 * count. */
static void matching_time_is_linear_in_name_length(void **state)
{
    (void)state;
    enum { LETTERS = 1 << 19, OPERATORS = 100000 };
    char *module = malloc(LETTERS + 2);
    assert_non_null(module);
    for (size_t i = 0; i <= LETTERS; i++) module[i] = i == LETTERS ? 'b' : i % 2 ? '.' : 'a';
    module[LETTERS + 1] = '\0';
    mdot_job *job = make_job_of(module, OPERATORS), *out = NULL;
    static const char *const others[] = {"*.lora_?", "*a*b*c", "*?.?.?.?.c", "a.*.b.*", "?*?*?*?*c"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(freeze(job, others[i], NULL, &out, NULL), MDOT_NOT_FOUND);
    assert_int_equal(freeze(job, "*.b", NULL, &out, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(freeze(job, NULL, "*a.b", &out, NULL), MDOT_OK);
    assert_compare(out->info.parameters, ==, 10.0 * OPERATORS);
    mdot_job_destroy(out);
    mdot_job_destroy(job);
    free(module);
}

static void each_pattern_must_match(void **state)
{
    (void)state;
    static const char *const patterns[] = {"model.embed", "model.layer"};
    mdot_job *job = make_job(true), *frozen = NULL;
    mdot_job_freezing f = {.struct_size = sizeof f, .frozen = patterns, .frozen_count = 2};
    mdot_error err = {0};
    assert_int_equal(mdot_job_freeze(job, &f, &frozen, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "\"model.layer\" matches no module");
    mdot_job_destroy(job);
}

/* The program's weight bytes follow the parameters. */
static void a_program_is_frozen_with_its_job(void **state)
{
    (void)state;
    mdot_job *plain = make_job(true), *job = NULL, *frozen = NULL;
    const mdot_job_program program = {
        .struct_size = sizeof program, .precision = MDOT_PRECISION_PYTORCH, .trained_bytes = 3600, .frozen_bytes = 40};
    mdot_job_program got = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_with_program(plain, &program, &job, NULL), MDOT_OK);
    assert_int_equal(freeze(job, "model.embed", NULL, &frozen, NULL), MDOT_OK);
    assert_int_equal(mdot_job_get_program(frozen, &got), MDOT_OK);
    assert_compare(got.trained_bytes, ==, 2600);
    assert_compare(got.frozen_bytes, ==, 1040); /* 260 parameters stay trained, 100 do not */
    mdot_job_destroy(frozen);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

static void missing_arguments_are_named(void **state)
{
    (void)state;
    static const char *const pair[] = {"model.embed", NULL};
    mdot_job *job = make_job(true), *out = NULL;
    mdot_job_freezing f = {.struct_size = sizeof f, .frozen = pair, .frozen_count = 1};
    mdot_error err = {0};
    assert_int_equal(mdot_job_freeze(NULL, &f, &out, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_freeze: job or out_job is NULL");
    err = (mdot_error){0};
    assert_int_equal(mdot_job_freeze(job, &f, NULL, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot_job_freeze: job or out_job is NULL");
    for (int i = 0; i < 4; i++) {
        f = (mdot_job_freezing){.struct_size = sizeof f};
        if (i == 0) f.frozen_count = 1; /* of NULL */
        if (i == 1) f.trained_count = 1;
        if (i == 2) f.frozen = pair, f.frozen_count = 2;
        if (i == 3) f.trained = pair, f.trained_count = 2;
        err = (mdot_error){0};
        assert_int_equal(mdot_job_freeze(job, &f, &out, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "a module pattern is NULL");
    }
    f = (mdot_job_freezing){.struct_size = sizeof f};
    assert_int_equal(mdot_job_freeze(job, &f, &out, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "frozen and trained are both empty");
    f.struct_size = 1;
    assert_int_equal(mdot_job_freeze(job, &f, &out, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "struct_size");
    mdot_job_operator none[COUNT];
    assert_int_equal(mdot_operators_freeze(&f, none, COUNT, &err), MDOT_INVALID_ARGUMENT);
    f = (mdot_job_freezing){.struct_size = sizeof f, .frozen = pair, .frozen_count = 1};
    assert_int_equal(mdot_operators_freeze(&f, NULL, COUNT, &err), MDOT_INVALID_ARGUMENT);
    none[0].struct_size = 1;
    assert_int_equal(mdot_operators_freeze(&f, none, COUNT, &err), MDOT_INVALID_ARGUMENT);
    assert_null(out);
    mdot_job_destroy(job);
}

/* An operator without a module is frozen only if everything unlisted is. */
static void operators_without_modules_follow_the_kind_of_list(void **state)
{
    (void)state;
    static const char *const embed = "model.embed";
    for (int lists_trained = 0; lists_trained < 2; lists_trained++) {
        mdot_job *job = make_job(true);
        mdot_job_operator operators[COUNT];
        for (size_t i = 0; i < COUNT; i++) operators[i] = job->operators[i];
        operators[2].module = NULL;
        operators[3].module = operators[0].module; /* again, after others */
        mdot_job_freezing f = {.struct_size = sizeof f, .frozen = &embed, .frozen_count = 1};
        if (lists_trained) f = (mdot_job_freezing){.struct_size = sizeof f, .trained = &embed, .trained_count = 1};
        assert_int_equal(mdot_operators_freeze(&f, operators, COUNT, NULL), MDOT_OK);
        static const bool frozen[2][COUNT] = {{true, false, false, true}, {false, true, true, false}};
        for (size_t i = 0; i < COUNT; i++) assert_int_equal(operators[i].parameters == 0, frozen[lists_trained][i]);
        mdot_job_destroy(job);
    }
}

/* Per-step gradients disappear as per-sample ones do. A gradient passes if any operator input is trained. */
static void all_gradients_of_frozen_operators_disappear(void **state)
{
    (void)state;
    static const uint32_t inputs[3][2] = {{0}, {0}, {0, 1}};
    static const char *const names[] = {"a", "b", "c"}, *const orders[] = {"a", "b"};
    for (int o = 0; o < 2; o++) {
        mdot_job_operator operators[3];
        for (size_t i = 0; i < 3; i++) {
            mdot_job_operator *op = &operators[i];
            *op = (mdot_job_operator){.struct_size = sizeof *op, .type = "Linear", .module = names[i], .parameters = 5};
            op->inputs = inputs[i];
            op->input_count = i == 2 ? 2 : 0;
            op->frozen_parameters = 3;
            for (int p = 0; p < MDOT_PHASE_COUNT; p++) op->per_sample[p] = op->per_step[p] = (mdot_load){1, 2, 3};
        }
        const mdot_job_freezing f = {.struct_size = sizeof f, .trained = &orders[o], .trained_count = 1};
        assert_int_equal(mdot_operators_freeze(&f, operators, 3, NULL), MDOT_OK);
        for (size_t i = 0; i < 3; i++) {
            const mdot_job_operator *op = &operators[i];
            bool is_trained = *names[i] == *orders[o];
            assert_compare(op->parameters, ==, is_trained ? 5 : 0);
            assert_compare(op->frozen_parameters, ==, is_trained ? 3 : 8);
            const mdot_load *loads[] = {op->per_sample, op->per_step};
            for (int k = 0; k < 2; k++) {
                assert_compare(loads[k][MDOT_PHASE_FORWARD].bytes_written, ==, 3);
                assert_compare(loads[k][MDOT_PHASE_WEIGHT_GRADIENT].bytes_read, ==, is_trained ? 2 : 0);
                assert_compare(loads[k][MDOT_PHASE_DATA_GRADIENT].bytes_read, ==, i == 2 ? 2 : 0);
            }
        }
    }
}

/* Operator inputs may be missing, and beyond the operator only by fault. */
static void dependencies_are_checked_before_they_are_followed(void **state)
{
    (void)state;
    static const char *const all = "m", *const one = "n";
    static const uint32_t inputs[2] = {0, 1};
    mdot_error err = {0};
    for (int i = 0; i < 4; i++) {
        mdot_job_operator operators[3];
        for (size_t k = 0; k < 3; k++)
            operators[k] = (mdot_job_operator){
                .struct_size = sizeof *operators, .type = "Op", .module = k == 2 ? one : all, .parameters = 1};
        mdot_job_operator *op = &operators[i == 3 ? 1 : 2];
        op->inputs = i == 0 ? NULL : inputs;
        op->input_count = i == 1 ? 0 : 2; /* operator 1 reads itself in the last case */
        const mdot_job_freezing f = {.struct_size = sizeof f, .frozen = &all, .frozen_count = 1};
        mdot_status status = mdot_operators_freeze(&f, operators, 3, &err);
        assert_int_equal(status, i == 0 || i == 3 ? MDOT_INVALID_ARGUMENT : MDOT_OK);
        if (i == 0) expect_contains(err.message, "operator 2 reads an operator that does not precede it");
        if (i == 3) expect_contains(err.message, "operator 1 reads an operator that does not precede it");
    }
}

/* A job without own parameters may train a tied table's. The program then stays unchanged. */
static void a_program_without_parameters_keeps_its_bytes(void **state)
{
    (void)state;
    static const char *const names[2] = {"table", "head"}, *const frozen = "table";
    mdot_job_operator operators[2];
    for (int i = 0; i < 2; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = "Linear", .module = names[i]};
        operators[i].per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = 1;
    }
    mdot_job *plain = predict_make_job(operators, 2), *job = NULL, *out = NULL;
    const mdot_job_program program = {
        .struct_size = sizeof program, .precision = MDOT_PRECISION_PYTORCH, .trained_bytes = 3600, .frozen_bytes = 40};
    mdot_job_program got = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_with_program(plain, &program, &job, NULL), MDOT_OK);
    assert_int_equal(freeze(job, frozen, NULL, &out, NULL), MDOT_OK);
    assert_int_equal(mdot_job_get_program(out, &got), MDOT_OK);
    assert_compare(got.trained_bytes, ==, 3600);
    assert_compare(got.frozen_bytes, ==, 40);
    mdot_job_destroy(out);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_modules_and_their_submodules),
        cmocka_unit_test(frozen_leading_layers_have_no_backward_pass),
        cmocka_unit_test(frozen_parameters_need_memory_for_weights_only),
        cmocka_unit_test(a_tied_layer_trains_the_weights_that_it_shares),
        cmocka_unit_test(files_keep_frozen_parameters),
        cmocka_unit_test(each_pattern_must_match),
        cmocka_unit_test(a_program_is_frozen_with_its_job),
        cmocka_unit_test(operators_can_be_frozen_before_the_job_is_created),
        cmocka_unit_test(operators_that_read_later_ones_are_refused),
        cmocka_unit_test(operators_stay_unchanged_if_freezing_fails),
        cmocka_unit_test(impossible_requests_are_refused),
        cmocka_unit_test(missing_arguments_are_named),
        cmocka_unit_test(operators_without_modules_follow_the_kind_of_list),
        cmocka_unit_test(all_gradients_of_frozen_operators_disappear),
        cmocka_unit_test(dependencies_are_checked_before_they_are_followed),
        cmocka_unit_test(a_program_without_parameters_keeps_its_bytes),
        cmocka_unit_test(random_patterns_match_as_documented),
        cmocka_unit_test(matching_time_is_linear_in_name_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
