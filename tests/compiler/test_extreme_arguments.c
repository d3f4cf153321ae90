/* test_extreme_arguments.c — functions of one operand in compiled code, at zeros, near overflow and beyond. */
#include "codegen/artefact.h"
#include "compiler/compiler.h"
#include "tests/support/graph_notation.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *op;
    double (*reference)(double x);
} functions[] = {{"Sinh", sinh},   {"Cosh", cosh}, {"Tanh", tanh}, {"Asinh", asinh}, {"Acosh", acosh},
                 {"Atanh", atanh}, {"Asin", asin}, {"Atan", atan}, {"Sin", sin},     {"Tan", tan},
                 {"Erf", erf},     {"Exp", exp},   {"Sqrt", sqrt}, {"Log", log}};
enum { FUNCTIONS = sizeof functions / sizeof functions[0], COUNT = 40 };

static const float arguments[COUNT] = {
    0.0f,  -0.0f,  1e-30f, -1e-30f, 1e-6f, -1e-6f, 0.3f,  -0.7f,  1.0f,     -1.0f,     1.5f, -3.0f, 39.9f, -40.1f,
    60.0f, -80.0f, 88.6f,  -88.8f,  89.2f, -89.4f, 89.6f, -100.f, 1e4f,     -1e4f,     1e8f, -1e8f, 9e8f,  1.1e9f,
    1e15f, -1e15f, 1e18f,  2e19f,   3e25f, -3e25f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN,  2.0f};

static bool agrees(float got, double want)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    float nearest = (float)want;
    if (nearest == 0 || isinf(nearest)) return got == nearest && signbit(got) == signbit(nearest);
    return fabs(got - want) <= 2e-6 * fabs(want) + 2e-45 && signbit(got) == signbit(nearest);
}

static void check_function(const char *folder, int f)
{
    static const co_hooks silent;
    static const char *const cpu[] = {"cpu:x86-64-v3"};
    char text[128], path[512];
    float got[COUNT];
    mdot_error err = {0};
    ir_arena *arena = ir_arena_create(0);
    cg_entry entry;
    co_targets targets;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    const int64_t dims[] = {COUNT};
    snprintf(path, sizeof path, "%s/extreme.mdot", folder);
    snprintf(text, sizeof text, "x = input f32[40]\ny = %s(x)\nreturn y\n", functions[f].op);
    ir_graph *graph = graph_from_notation(text, INT64_MAX, arena);
    graph->symbol = NULL;
    mdot_status status = co_parse_targets(cpu, 1, "fp32", &targets, &err);
    if (status == MDOT_OK) status = co_plan_entry("run", graph, NULL, 0, false, &silent, arena, &entry, &err);
    const cg_options options = {
        .predictor_name = "extreme", .target_count = targets.count, .targets = targets.target, .in_process = true};
    if (status == MDOT_OK) status = cg_write_artefact(&entry, 1, &options, path, arena, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(path, NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    const mdot_input in = {graph->inputs[0]->name, MDOT_DTYPE_F32, 1, dims, arguments};
    const mdot_output out = {graph->outputs[0]->name, got, sizeof got};
    if (status == MDOT_OK) status = mdot_run(context, 0, &in, 1, &out, 1, &err);
    if (status != MDOT_OK) fail_msg("%s: %s", functions[f].op, err.message);
    for (int i = 0; i < COUNT; i++) {
        bool is_periodic = strcmp(functions[f].op, "Sin") == 0 || strcmp(functions[f].op, "Tan") == 0;
        if (is_periodic && fabsf(arguments[i]) > 1e6f) continue; /* the result is accurate to an absolute error */
        double want = functions[f].reference(arguments[i]);
        if (!agrees(got[i], want))
            fail_msg("%s(%.9g) is %.9g and should be %.9g", functions[f].op, arguments[i], got[i], want);
    }
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    ir_arena_destroy(arena);
}

static void functions_match_libm_at_zeros_and_near_overflow(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    for (int f = 0; f < FUNCTIONS; f++) check_function(folder, f);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_match_libm_at_zeros_and_near_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
