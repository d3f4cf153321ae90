/* test_traced_program.c — frontend/job/traced_program.c and gradient_flow.c: a tracer's notes, and gradients stopped by
 * a program. */
#include "frontend/job/fe_job.h"
#include "frontend/job/traced_program.h"
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static double backward_bytes(const mdot_job_operator *op, mdot_phase phase)
{
    return op->per_sample[phase].bytes_read + op->per_sample[phase].bytes_written + op->per_step[phase].bytes_read +
           op->per_step[phase].bytes_written + op->per_sample[phase].flops;
}

/* Two 16 by 16 layers with biases. The gradient may stop between them. */
static onnx_builder *two_layers(bool stops)
{
    onnx_builder *b = onnx_begin(17);
    if (stops) onnx_import(b, "mdot", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
    onnx_initializer(b, "back.weight", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_initializer(b, "back.bias", MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "head.weight", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_initializer(b, "head.bias", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "MatMul", "x,back.weight", "h");
    onnx_node_name(b, "/back/MatMul");
    onnx_node(b, "Add", "h,back.bias", "s");
    onnx_node(b, stops ? "mdot:StopGradient" : "Identity", "s", "f");
    onnx_node(b, "MatMul", "f,head.weight", "g");
    onnx_node_name(b, "/head/MatMul");
    onnx_node(b, "Add", "g,head.bias", "y");
    onnx_output(b, "y");
    return b;
}

static void region_without_gradient_has_no_backward_cost_and_is_frozen(void **state)
{
    (void)state;
    job_reading job = job_expect(two_layers(true)), plain = job_expect(two_layers(false));
    mdot_job_operator back = job_operator(&job, 0), head = job_operator(&job, 1);
    assert_compare(back.parameters, ==, 0);
    assert_compare(back.frozen_parameters, ==, 272);
    assert_compare(head.parameters, ==, 272);
    assert_compare(head.frozen_parameters, ==, 0);
    assert_compare(backward_bytes(&back, MDOT_PHASE_WEIGHT_GRADIENT), ==, 0);
    assert_compare(backward_bytes(&back, MDOT_PHASE_DATA_GRADIENT), ==, 0);
    assert_compare(backward_bytes(&head, MDOT_PHASE_DATA_GRADIENT), ==, 0);
    assert_compare(backward_bytes(&head, MDOT_PHASE_WEIGHT_GRADIENT), >, 0);
    assert_true(head.known);
    assert_compare(head.input_count, ==, 1);
    mdot_job_operator trained = job_operator(&plain, 0);
    assert_compare(trained.parameters, ==, 272);
    assert_compare(backward_bytes(&trained, MDOT_PHASE_WEIGHT_GRADIENT), >, 0);
    job_end(&plain);
    job_end(&job);
}

/* A branch ending in StopGradient reads a trained layer, which stays trained by the other branch. */
static void stopped_branch_beside_a_trained_one_gets_no_gradient(void **state)
{
    (void)state;
    onnx_builder *b = two_layers(false);
    onnx_import(b, "mdot", 1);
    onnx_node(b, "Sigmoid", "s", "t");
    onnx_node(b, "mdot:StopGradient", "t", "u");
    onnx_node(b, "Mul", "u,y", "z");
    job_reading job = job_expect_output(b, "z");
    mdot_job_info info = job_info(&job);
    assert_compare(info.parameters, ==, 544);
    assert_compare(info.frozen_parameters, ==, 0);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = job_operator(&job, i);
        bool is_stopped = strcmp(op.type, "Sigmoid") == 0;
        assert_int_equal(op.flags, is_stopped ? MDOT_OPERATOR_STOPS_GRADIENT : 0);
        if (is_stopped) assert_compare(backward_bytes(&op, MDOT_PHASE_DATA_GRADIENT), ==, 0);
    }
    job_end(&job);
}

/* The outputs are then no losses. */
static void program_without_any_gradient_is_trained_as_before(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,16");
    onnx_import(b, "mdot", 1);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_node(b, "MatMul", "x,w", "h");
    onnx_node(b, "mdot:StopGradient", "h", "y");
    job_reading job = job_expect_output(b, "y");
    mdot_job_operator op = job_operator(&job, 0);
    assert_compare(op.parameters, ==, 256);
    assert_compare(backward_bytes(&op, MDOT_PHASE_WEIGHT_GRADIENT), >, 0);
    job_end(&job);
}

/* A view that starts a gradient, of an input and behind a layer without one. */
static void gradient_starts_at_a_view(void **state)
{
    (void)state;
    for (int starts = 0; starts < 2; starts++) {
        onnx_builder *b = job_begin("N,16");
        onnx_import(b, "mdot", 1);
        onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,16", NULL);
        onnx_node(b, "mdot:View", "x", "v");
        onnx_attr_int(b, "starts_gradient", starts);
        onnx_node(b, "MatMul", "v,w", "y");
        job_reading job = job_expect_output(b, "y");
        mdot_job_operator op = job_operator(&job, 0);
        assert_compare(op.per_sample[MDOT_PHASE_DATA_GRADIENT].flops, ==, starts ? 512 : 0);
        assert_compare(op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, ==, 512);
        job_end(&job);
    }
}

/* A program's own backward pass: more than the operator's, only a weight's, or none. */
static void products_have_the_dispatched_backward_flops(void **state)
{
    (void)state;
    for (int part = 0; part < 4; part++) {
        onnx_builder *b = two_layers(false);
        onnx_metadata(b, "mdot.program", "1");
        onnx_node(b, "MatMul", "y,head.weight", "z");
        onnx_attr_float(b, "backward_flops", 256.0F * (float)part);
        job_reading job = job_expect_output(b, "z");
        mdot_job_operator op = job_operator(&job, 2);
        double rows = (double)job_info(&job).batch, weight = op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops;
        assert_compare(rows * (op.per_sample[MDOT_PHASE_DATA_GRADIENT].flops + weight), ==, 256.0 * part);
        if (part == 0) assert_compare(backward_bytes(&op, MDOT_PHASE_WEIGHT_GRADIENT), ==, 0);
        job_end(&job);
    }
}

/* BitFit: only biases are trained. */
static void parameters_freeze_one_by_one(void **state)
{
    (void)state;
    onnx_builder *b = two_layers(false);
    onnx_metadata(b, "mdot.program", "1");
    onnx_metadata(b, "mdot.frozen", "back.weight\nhead.weight\nunused.weight");
    job_reading job = job_expect(b), plain = job_expect(two_layers(false));
    for (size_t i = 0; i < 2; i++) {
        mdot_job_operator op = job_operator(&job, i), trained = job_operator(&plain, i);
        assert_compare(op.parameters, ==, 16);
        assert_compare(op.frozen_parameters, ==, 256);
        assert_compare(op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, ==, 16); /* the bias: a sum over the batch */
        assert_compare(op.per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written, ==, 64);
        assert_compare(trained.per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops, >, 16);
        assert_compare(backward_bytes(&op, MDOT_PHASE_DATA_GRADIENT), ==,
                       backward_bytes(&trained, MDOT_PHASE_DATA_GRADIENT));
    }
    job_end(&plain);
    job_end(&job);
}

static void checkpointed_modules_are_flagged(void **state)
{
    (void)state;
    onnx_builder *b = two_layers(false);
    onnx_metadata(b, "mdot.program", "1");
    onnx_metadata(b, "mdot.recomputed", "hea\nback");
    job_reading job = job_expect(b);
    assert_int_equal(job_operator(&job, 0).flags, MDOT_OPERATOR_RECOMPUTED);
    assert_int_equal(job_operator(&job, 1).flags, 0);
    job_end(&job);
}

/* A tracer names nodes in seven notes. Each node gets the flags of the notes with its name, and a kept one is not
 * recomputed. Empty lines, unknown and repeated names count for nothing. */
static void noted_nodes_get_their_flags(void **state)
{
    (void)state;
    enum { NODES = 12, NOTES = 8 };
    static const char *const keys[NOTES] = {"mdot.offloaded", "mdot.ran_full",   "mdot.ran_half", "mdot.recomputed",
                                            "mdot.once_more", "mdot.twice_more", "mdot.repeated", "mdot.kept"};
    static const uint32_t flags[NOTES] = {
        MDOT_OPERATOR_OFFLOADED, MDOT_OPERATOR_RAN_FULL,   MDOT_OPERATOR_RAN_HALF,   MDOT_OPERATOR_RECOMPUTED,
        MDOT_OPERATOR_ONCE_MORE, MDOT_OPERATOR_TWICE_MORE, MDOT_OPERATOR_RECOMPUTED, 0};
    unsigned seed = 7;
    for (int round = 0; round < 60; round++) {
        unsigned noted[NOTES];
        onnx_builder *b = job_begin("N,16");
        onnx_metadata(b, "mdot.program", "1");
        for (int k = 0; k < NOTES; k++) {
            char text[512] = "\nother\n\n";
            seed = seed * 1664525 + 1013904223;
            noted[k] = seed >> 12 & ((1 << NODES) - 1);
            if (round % 8 == k) noted[k] = 0;
            for (int i = 0; i < NODES; i++)
                if (noted[k] >> i & 1)
                    sprintf(text + strlen(text), "%1$s%2$d%3$s\n%1$s%2$d%3$s%4$s", k == 3 ? "m" : "/m", i,
                            k == 3 ? "" : "/Relu", i + 1 < NODES ? "\n" : "");
            if (noted[k] != 0 || round % 2 == 0) onnx_metadata(b, keys[k], text);
        }
        for (int i = 0; i < NODES; i++) {
            char in[8], out[8], name[16];
            snprintf(in, sizeof in, i == 0 ? "x" : "h%d", i - 1);
            snprintf(out, sizeof out, i + 1 == NODES ? "y" : "h%d", i);
            snprintf(name, sizeof name, "/m%d/Relu", i);
            onnx_node(b, "Relu", in, out);
            onnx_node_name(b, name);
        }
        job_reading job = job_expect_output(b, "y");
        for (int i = 0; i < NODES; i++) {
            uint32_t wanted = 0;
            for (int k = 0; k < NOTES; k++)
                if (noted[k] >> i & 1) wanted |= flags[k];
            if (noted[NOTES - 1] >> i & 1) wanted &= ~(uint32_t)MDOT_OPERATOR_RECOMPUTED;
            assert_int_equal(job_operator(&job, (size_t)i).flags, wanted);
        }
        job_end(&job);
    }
}

/* A tracer's view of data is free, and a view of a parameter is that parameter. */
static void views_cost_nothing(void **state)
{
    (void)state;
    for (int views = 0; views < 8; views++) {
        job_reading r[2];
        for (int k = 0; k < 2; k++) { /* the second model has the views of the bits, and the first has none */
            int has = k * views;
            onnx_builder *b = job_begin("N,16");
            onnx_import(b, "mdot", 1);
            onnx_metadata(b, "mdot.program", "1");
            onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,16", NULL);
            if (has & 1) onnx_node(b, "mdot:View", "w", "w2");
            if (has & 2) onnx_node(b, "mdot:View", "x", "x2");
            onnx_node(b, "MatMul", has & 1 ? (has & 2 ? "x2,w2" : "x,w2") : (has & 2 ? "x2,w" : "x,w"), "h");
            if (has & 4) onnx_node(b, "mdot:View", "h", "h2");
            onnx_node(b, "Relu", has & 4 ? "h2" : "h", "y");
            r[k] = job_expect_output(b, "y");
            assert_string_equal(r[k].warnings, "");
        }
        job_expect_same(&r[0], &r[1]);
        assert_compare(job_info(&r[1]).parameters, ==, 256);
        job_end(&r[0]);
        job_end(&r[1]);
    }
}

/* x * sigmoid(x), one operator in an ordinary file. */
static size_t count_operators(bool is_traced)
{
    onnx_builder *b = onnx_begin(17);
    if (is_traced) onnx_metadata(b, "mdot.program", "1");
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
    onnx_node(b, "Sigmoid", "x", "s");
    onnx_node(b, "Mul", "x,s", "y");
    job_reading job = job_expect_output(b, "y");
    mdot_job_info info = job_info(&job);
    job_end(&job);
    return info.operator_count;
}

static void composition_of_a_program_stays_composed(void **state)
{
    (void)state;
    assert_int_equal(count_operators(false), 1);
    assert_int_equal(count_operators(true), 2);
}

static void job_of_a_program_holds_its_attention(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        mdot_attention attention;
    } cases[] = {{"fused", MDOT_ATTENTION_FLASH}, {"written", MDOT_ATTENTION_EAGER}, {"odd", MDOT_ATTENTION_PROGRAM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = two_layers(false);
        onnx_metadata(b, "mdot.program", "1");
        onnx_metadata(b, "mdot.attention", cases[i].word);
        job_reading job = job_expect(b);
        mdot_job_program p = MDOT_INIT(mdot_job_program);
        assert_int_equal(mdot_job_get_program(job.job, &p), MDOT_OK);
        assert_int_equal(p.attention, cases[i].attention);
        assert_int_equal(p.precision, MDOT_PRECISION_PYTORCH);
        assert_false(p.has_loss);
        job_end(&job);
    }
    job_reading plain = job_expect(two_layers(false));
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(plain.job, &p), MDOT_NOT_FOUND);
    job_end(&plain);
}

static void keep_text(void *user, const char *text) { snprintf(user, 512, "%s", text); }

/* The law: the job's products are those of the graph as it was read. */
static void lost_or_added_products_are_told(void **state)
{
    (void)state;
    static const double own[] = {0, 0.97, 0.985, 1, 1.015, 1.03, 2};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        job_reading r = job_expect(two_layers(false));
        char text[512] = "";
        const mdot_job_options options = {.struct_size = sizeof options, .warning = keep_text, .user = text};
        ir_arena *arena = ir_arena_create(0);
        fe_job job = {.graph = ir_graph_create(arena, "network.onnx"), .options = &options, .batch = 4, .err = &r.err};
        job.check = (mdot_job_check){.dispatched_flops = {1e9}, .job_flops = {own[i] * 1e9}};
        job.result = r.job;
        fe_job_add_program(&job);
        assert_compare(job.status, ==, MDOT_OK);
        r.job = job.result;
        bool differs = fabs(own[i] - 1) > 0.02;
        assert_int_equal(strstr(text, "network.onnx: work-differs: ") != NULL, differs);
        mdot_job_program program = {.struct_size = sizeof program};
        if (differs) {
            assert_compare(mdot_job_get_program(r.job, &program), ==, MDOT_OK);
            assert_compare(program.check.job_flops[0], ==, own[i] * 1e9);
        }
        job_end(&r);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(region_without_gradient_has_no_backward_cost_and_is_frozen),
        cmocka_unit_test(stopped_branch_beside_a_trained_one_gets_no_gradient),
        cmocka_unit_test(program_without_any_gradient_is_trained_as_before),
        cmocka_unit_test(gradient_starts_at_a_view),
        cmocka_unit_test(products_have_the_dispatched_backward_flops),
        cmocka_unit_test(parameters_freeze_one_by_one),
        cmocka_unit_test(checkpointed_modules_are_flagged),
        cmocka_unit_test(noted_nodes_get_their_flags),
        cmocka_unit_test(views_cost_nothing),
        cmocka_unit_test(composition_of_a_program_stays_composed),
        cmocka_unit_test(job_of_a_program_holds_its_attention),
        cmocka_unit_test(lost_or_added_products_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
