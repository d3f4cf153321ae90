/* test_adapters.c — frontend/config/adapters.c: low-rank adapters in ready jobs. Laws hold for each family, set of
 * targets and rank. tests/bindings/python/torch/test_ready_jobs.py compares the same jobs with models of peft. */
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int use_shipped_jobs(void **state)
{
    (void)state;
    return setenv("MDOT_JOBS", MDOT_SOURCE_DIR "/weights/jobs", 1);
}

enum { MOST_WARNING = 400 };

static void keep_warning(void *user, const char *text) { snprintf(user, MOST_WARNING, "%s", text); }

static mdot_status read_adapted(const char *name, uint32_t rank, const char *const *targets, size_t count,
                                char warning[MOST_WARNING], mdot_job **out_job, mdot_error *err)
{
    const mdot_job_adapters adapters = {
        .struct_size = sizeof adapters, .rank = rank, .targets = targets, .target_count = count};
    const mdot_job_options options = {.struct_size = sizeof options,
                                      .keep_names = 1,
                                      .warning = keep_warning,
                                      .user = warning,
                                      .adapters = rank > 0 ? &adapters : NULL};
    *warning = '\0';
    return mdot_job_read(name, &options, out_job, err);
}

/* Numbers of a job, with sums over all operators. */
typedef struct sums {
    double parameters, frozen, forward, weight_gradient;
    size_t operators, adapters;
} sums;

static sums sums_of(const mdot_job *job)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    sums s = {info.parameters, info.frozen_parameters, 0, 0, info.operator_count, 0};
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        s.forward += op.per_sample[MDOT_PHASE_FORWARD].flops;
        s.weight_gradient += op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops;
        s.adapters += strstr(op.module != NULL ? op.module : "", ".lora_A") != NULL;
    }
    return s;
}

/* Adds the elements and the forward FLOPs of adapters beside the layers whose names end so. */
static void add_adapters(const mdot_job *plain, const char *const *targets, size_t count, double rank, sums *total)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(plain, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(plain, i, &op);
        const char *dot = op.module != NULL ? strrchr(op.module, '.') : NULL;
        bool is_target = false;
        for (size_t t = 0; t < count && dot != NULL; t++) is_target = is_target || strcmp(dot + 1, targets[t]) == 0;
        if (!is_target || strcmp(op.type, "Linear") != 0) continue;
        double from = (double)op.setting[MDOT_SETTING_CHANNELS_IN], to = (double)op.setting[MDOT_SETTING_CHANNELS_OUT];
        double tokens = op.per_sample[MDOT_PHASE_FORWARD].bytes_read / 4 / from;
        total->parameters += rank * (from + to);
        total->weight_gradient += tokens * 2 * rank * (from + to);
        total->forward += tokens * (2 * rank * (from + to) + 2 * to);
        total->operators += 4;
        total->adapters++;
    }
}

/* ---- Laws -------------------------------------------------------------------------------------------------------- */

static void each_target_gets_an_adapter_and_all_else_is_frozen(void **state)
{
    (void)state;
    static const struct {
        const char *name, *targets[7];
        bool is_recorded;
    } rows[] = {
        {"llama-3.2-1b", {"q_proj", "v_proj"}, true},
        {"llama-3.2-1b", {"q_proj", "k_proj", "v_proj", "o_proj"}, true},
        {"llama-3.2-1b", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}, true},
        {"llama-3.2-1b", {"down_proj"}, false},
        {"llama-7b", {"q_proj", "v_proj"}, true},
        {"gpt2", {"c_attn"}, true},
        {"gpt2", {"c_fc"}, false},
        {"bert-base", {"query", "value"}, true},
        {"mistral-7b", {"q_proj", "k_proj", "v_proj", "o_proj"}, true},
        {"qwen2.5-0.5b", {"q_proj", "v_proj"}, true},
        {"qwen3-0.6b", {"q_proj", "v_proj"}, true},
        {"phi-3-mini", {"qkv_proj", "o_proj"}, true},
        {"opt-125m", {"fc1"}, false},
    };
    static const uint32_t ranks[] = {1, 8, 64};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 0;
        while (count < 7 && rows[i].targets[count] != NULL) count++;
        char warning[MOST_WARNING];
        mdot_job *plain = NULL, *adapted = NULL;
        mdot_error err = {0};
        if (read_adapted(rows[i].name, 0, NULL, 0, warning, &plain, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (int k = 0; k < 3; k++) {
            sums wanted = sums_of(plain);
            wanted.frozen = wanted.parameters;
            wanted.parameters = wanted.weight_gradient = 0;
            add_adapters(plain, rows[i].targets, count, ranks[k], &wanted);
            if (read_adapted(rows[i].name, ranks[k], rows[i].targets, count, warning, &adapted, &err) != MDOT_OK)
                fail_msg("%s: %s", rows[i].name, err.message);
            sums found = sums_of(adapted);
            assert_compare(found.parameters, ==, wanted.parameters);
            assert_compare(found.frozen, ==, wanted.frozen);
            assert_int_equal(found.operators, wanted.operators);
            assert_int_equal(found.adapters, wanted.adapters);
            assert_compare(fabs(found.forward / wanted.forward - 1), <, 1e-9);
            assert_compare(fabs(found.weight_gradient / wanted.weight_gradient - 1), <, 1e-9);
            mdot_job_program program = MDOT_INIT(mdot_job_program);
            assert_int_equal(mdot_job_get_program(adapted, &program), MDOT_OK);
            assert_compare(program.recorded_count, >, 0);
            if ((strstr(warning, "the memory is") == NULL) != rows[i].is_recorded)
                fail_msg("%s, %s: \"%s\"", rows[i].name, rows[i].targets[0], warning);
            mdot_job_destroy(adapted);
            adapted = NULL;
        }
        mdot_job_destroy(plain);
    }
}

static void all_linear_leaves_out_the_head(void **state)
{
    (void)state;
    static const char *const all = "all-linear", *const names[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                                   "gate_proj", "up_proj", "down_proj"};
    char warning[MOST_WARNING];
    mdot_job *one = NULL, *other = NULL;
    mdot_error err = {0};
    assert_int_equal(read_adapted("llama-3.2-1b", 8, &all, 1, warning, &one, &err), MDOT_OK);
    assert_int_equal(read_adapted("llama-3.2-1b", 8, names, 7, warning, &other, &err), MDOT_OK);
    assert_compare(sums_of(one).parameters, ==, sums_of(other).parameters);
    assert_string_equal(warning, "");
    mdot_job_destroy(one);
    mdot_job_destroy(other);
}

/* The first blocks before an adapter have no backward pass. */
static void nothing_flows_back_below_the_first_adapter(void **state)
{
    (void)state;
    static const char *const target = "layers.3.self_attn.q_proj";
    char warning[MOST_WARNING];
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (read_adapted("llama-3.2-1b", 8, &target, 1, warning, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(sums_of(job).adapters, 1);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        double flops = op.per_sample[MDOT_PHASE_DATA_GRADIENT].flops;
        if (op.block > 0 && op.block < 4 && flops > 0) fail_msg("%s of block %u: %g", op.type, op.block, flops);
        if (op.block > 4 && strcmp(op.type, "Linear") == 0) assert_compare(flops, >, 0);
    }
    mdot_job_destroy(job);
}

/* ---- Targets that name nothing, and other trained modules ------------------------------------------------------- */

static void a_target_without_a_linear_layer_is_named(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"gpt2", "c_attn", "nosuch"}, {"gpt2", "wte", "c_attn"}, {"llama-3.2-1b", "all-linear", "embed_tokens"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char warning[MOST_WARNING];
        mdot_job *job = NULL;
        mdot_error err = {0};
        if (read_adapted(rows[i][0], 8, &rows[i][1], 2, warning, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        if (strstr(warning, rows[i][i == 1 ? 1 : 2]) == NULL) fail_msg("row %zu: \"%s\"", i, warning);
        mdot_job_destroy(job);
    }
}

/* A frozen module may have adapters. A trained one would freeze them. */
static void adapters_exclude_other_trained_modules(void **state)
{
    (void)state;
    static const char *const target = "c_attn", *const modules[] = {"lm_head", "*", "transformer.h.0.mlp.c_fc"};
    const mdot_job_adapters adapters = {
        .struct_size = sizeof adapters, .rank = 8, .targets = &target, .target_count = 1};
    for (size_t i = 0; i < 6; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        const mdot_job_freezing freezing = {.struct_size = sizeof freezing,
                                            .frozen = modules,
                                            .frozen_count = i < 3 ? 0 : 1,
                                            .trained = &modules[i % 3],
                                            .trained_count = 1};
        const mdot_job_options options = {.struct_size = sizeof options, .adapters = &adapters, .freezing = &freezing};
        assert_int_equal(mdot_job_read("gpt2", &options, &job, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, "trained") == NULL) fail_msg("\"%s\"", err.message);
    }
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void adapters_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const q = "q_proj", *const unknown = "foo", *const part = "proj", *const none = NULL;
    static const struct {
        const char *name;
        uint32_t rank;
        const char *const *targets;
        size_t count;
        mdot_status status;
        const char *text;
    } rows[] = {
        {"resnet50", 8, &q, 1, MDOT_UNSUPPORTED, "mdot export"}, {"gpt2", 8, &unknown, 1, MDOT_NOT_FOUND, "\"foo\""},
        {"llama-3-8b", 8, &part, 1, MDOT_NOT_FOUND, "\"proj\""}, {"gpt2", 8, &q, 0, MDOT_INVALID_ARGUMENT, "targets"},
        {"gpt2", 1 << 17, &q, 1, MDOT_INVALID_ARGUMENT, "rank"}, {"gpt2", 8, NULL, 1, MDOT_INVALID_ARGUMENT, "targets"},
        {"gpt2", 8, &none, 1, MDOT_INVALID_ARGUMENT, "targets"}, {"gpt2", 8, &q, 33, MDOT_INVALID_ARGUMENT, "32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        char warning[MOST_WARNING];
        mdot_status status =
            read_adapted(rows[i].name, rows[i].rank, rows[i].targets, rows[i].count, warning, &job, &err);
        if (status != rows[i].status || strstr(err.message, rows[i].text) == NULL)
            fail_msg("row %zu: %s: %s", i, mdot_status_name(status), err.message);
        assert_null(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_target_gets_an_adapter_and_all_else_is_frozen),
        cmocka_unit_test(all_linear_leaves_out_the_head),
        cmocka_unit_test(nothing_flows_back_below_the_first_adapter),
        cmocka_unit_test(a_target_without_a_linear_layer_is_named),
        cmocka_unit_test(adapters_exclude_other_trained_modules),
        cmocka_unit_test(adapters_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, use_shipped_jobs, NULL);
}
