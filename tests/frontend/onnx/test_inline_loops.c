/* test_inline_loops.c — frontend/onnx/inline_loops.c and loop_steps.c: Loop and Scan in a predictor. The imported graph
 * is evaluated and compared with the same computation in notation. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const unsigned char yes = 1;
static const int64_t zero = 0, one = 1, two = 2, three = 3, seven = 7, no_limit = INT64_MAX;
static const float zeros[4];

/* ---- Models ------------------------------------------------------------------------------------------------------ */

/* x [N, 4], and constants for the cases. */
static onnx_builder *begin(const char *const *outputs)
{
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    for (int i = 0; outputs[i] != NULL; i++) onnx_output(b, outputs[i]);
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "two", MDOT_DTYPE_I64, "", &two);
    onnx_initializer(b, "three", MDOT_DTYPE_I64, "", &three);
    onnx_initializer(b, "seven", MDOT_DTYPE_I64, "", &seven);
    onnx_initializer(b, "most", MDOT_DTYPE_I64, "", &no_limit);
    onnx_initializer(b, "h0", MDOT_DTYPE_F32, "4", zeros);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Gather", "shape,zero", "n");
    return b;
}

static void body_input(onnx_builder *b, const char *name) { onnx_input(b, name, MDOT_DTYPE_F32, NULL); }

static void expect_same(onnx_builder *b, const char *notation)
{
    imported m = expect_imported(b, NULL);
    ir_arena *arena = ir_arena_create(0);
    for (int length = 1; length <= 9; length += 4) {
        ir_graph *graph = ir_graph_clone(m.graph, arena), *wanted = graph_from_notation(notation, 9, arena);
        mdot_error err = {0};
        graph->max_length = 9;
        if (ir_infer(graph, &err) != MDOT_OK || ir_infer(wanted, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_same_values(graph, wanted, length, 1e-9);
    }
    ir_arena_destroy(arena);
    release(&m);
}

static void expect_unsupported(onnx_builder *b, const char *reason)
{
    imported m = expect_imported(b, NULL);
    mdot_error err = {0};
    assert_int_equal(ir_check_supported(m.graph, &err), MDOT_UNSUPPORTED);
    if (strstr(err.message, reason) == NULL) fail_msg("%s", err.message);
    release(&m);
}

static int count_loops(const ir_graph *graph)
{
    int count = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) count += ir_is_loop_begin(node);
    return count;
}

/* ---- Scan -------------------------------------------------------------------------------------------------------- */

/* A running sum over the rows of x: the last value, and all values. */
static onnx_builder *scan_to(const char *x, const char *const *outputs, const char *results)
{
    onnx_builder *b = begin(outputs), *body = onnx_begin(21);
    onnx_node(b, "Transpose", "x", "xt");
    body_input(body, "h");
    body_input(body, "row");
    onnx_node(body, "Add", "h,row", "sum");
    onnx_output(body, "sum");
    onnx_node(body, "Identity", "sum", "element");
    onnx_output(body, "element");
    char inputs[32];
    snprintf(inputs, sizeof inputs, "h0,%s", x);
    onnx_node(b, "Scan", inputs, results);
    onnx_attr_int(b, "num_scan_inputs", 1);
    onnx_attr_graph(b, "body", body);
    return b;
}

static onnx_builder *scan(const char *x)
{
    static const char *const outputs[] = {"last", "all", NULL};
    return scan_to(x, outputs, "last,all");
}

#define SUMS "x = input f32[L,4]\naxis = constant i64[] [0]\n"
#define TOTAL "axes = constant i64[1] [0]\nlast = ReduceSum(x, axes) {keepdims=0}\n"

static void a_scan_runs_over_an_axis_in_either_direction(void **state)
{
    (void)state;
    static const int64_t first[] = {1};
    expect_same(scan("x"), SUMS "all = CumSum(x, axis)\n" TOTAL "return last, all\n");
    onnx_builder *b = scan("x");
    onnx_attr_ints(b, "scan_input_directions", 1, first);
    onnx_attr_ints(b, "scan_output_directions", 1, first);
    expect_same(b, SUMS "all = CumSum(x, axis) {reverse=1}\n" TOTAL "return last, all\n");
    b = scan("xt");
    onnx_attr_ints(b, "scan_input_axes", 1, first);
    onnx_attr_ints(b, "scan_output_axes", 1, first);
    expect_same(b, SUMS "sums = CumSum(x, axis)\nall = Transpose(sums)\n" TOTAL "return last, all\n");
}

static void outputs_may_be_absent(void **state)
{
    (void)state;
    static const char *const last[] = {"last", NULL}, *const all[] = {"all", NULL}, *const neither[] = {"xt", NULL};
    expect_same(scan_to("x", last, "last"), "x = input f32[L,4]\n" TOTAL "return last\n");
    expect_same(scan_to("x", all, ",all"), SUMS "all = CumSum(x, axis)\nreturn all\n");
    expect_same(scan_to("x", neither, ""), "x = input f32[L,4]\nxt = Transpose(x)\nreturn xt\n");
}

static void other_scans_are_refused(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs);
    onnx_node(b, "Scan", "h0,x", "y");
    expect_unsupported(b, "Scan (it has no body)");
    b = scan("x");
    onnx_node(b, "Scan", "x", "y");
    onnx_builder *body = onnx_begin(21);
    body_input(body, "row");
    body_input(body, "other");
    onnx_node(body, "Add", "row,other", "sum");
    onnx_output(body, "sum");
    onnx_attr_int(b, "num_scan_inputs", 1);
    onnx_attr_graph(b, "body", body);
    expect_unsupported(b, "its inputs and outputs differ from those of its body");
    b = onnx_begin(8);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,N,4");
    onnx_output(b, "y");
    onnx_node(b, "Scan", ",x", "y");
    onnx_attr_int(b, "num_scan_inputs", 1);
    body = onnx_begin(8);
    body_input(body, "row");
    onnx_node(body, "Relu", "row", "r");
    onnx_output(body, "r");
    onnx_attr_graph(b, "body", body);
    expect_unsupported(b, "export the model with opset 9 or later");
}

/* ---- Loop -------------------------------------------------------------------------------------------------------- */

/* A body beginning with the step and the condition. */
static onnx_builder *loop_body(void)
{
    onnx_builder *body = onnx_begin(21);
    onnx_input(body, "step", MDOT_DTYPE_I64, "");
    onnx_input(body, "go", MDOT_DTYPE_BOOL, "");
    return body;
}

/* The loop of an RNN as TensorFlow writes it: the counter, the bound and the weights are states. */
static void states_that_stay_the_same_are_read_from_outside(void **state)
{
    (void)state;
    static const char *const outputs[] = {"last", "all", NULL};
    static const float weights[] = {.1f, .2f, .3f, .4f};
    onnx_builder *b = begin(outputs), *body = loop_body();
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4", weights);
    onnx_node(b, "Less", "zero,n", "first");
    onnx_input(body, "i", MDOT_DTYPE_I64, "");
    onnx_input(body, "bound", MDOT_DTYPE_I64, "");
    body_input(body, "h");
    body_input(body, "wi");
    onnx_initializer(body, "inner", MDOT_DTYPE_I64, "", &one);
    onnx_node(body, "Add", "i,inner", "next");
    onnx_node(body, "Less", "next,bound", "more");
    onnx_output(body, "more");
    onnx_output(body, "next");
    onnx_node(body, "Identity", "bound", "same");
    onnx_output(body, "same");
    onnx_node(body, "Gather", "x,i", "row");
    onnx_node(body, "Mul", "row,wi", "weighted");
    onnx_node(body, "Add", "weighted,h", "sum");
    onnx_output(body, "sum");
    onnx_output(body, "wi");
    onnx_node(body, "Identity", "sum", "element");
    onnx_output(body, "element");
    onnx_node(b, "Loop", "most,first,zero,n,h0,w", "c,d,last,e,all");
    onnx_attr_graph(b, "body", body);
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_of(m.graph, IR_OP_LoopBegin)->input_count, 2); /* the counter and the sum */
    assert_int_equal(node_of(m.graph, IR_OP_LoopEnd)->output_count, 3);
    release(&m);
}

typedef struct condition {
    const char *op, *a, *b; /* of the condition; `not` and `and` are as in ONNX */
    bool negates;
    const char *trips;
    const char *steps; /* the step count, in notation */
} condition;

/* Counts loop steps in a float. */
static onnx_builder *counting_loop(const condition *c)
{
    static const char *const outputs[] = {"count", NULL};
    static const float nothing = 0, unit = 1;
    onnx_builder *b = begin(outputs), *body = loop_body();
    char names[64];
    onnx_initializer(b, "nothing", MDOT_DTYPE_F32, "", &nothing);
    onnx_initializer(b, "unit", MDOT_DTYPE_F32, "", &unit);
    onnx_input(body, "i", MDOT_DTYPE_I64, "");
    body_input(body, "h");
    onnx_node(body, "Add", "one,i", "next");
    snprintf(names, sizeof names, "%s,%s", c->a, c->b);
    onnx_node(body, c->op, names, c->negates ? "done" : "compared");
    if (c->negates) onnx_node(body, "Not", "done", "compared");
    onnx_node(body, "And", "compared,go", "more");
    onnx_output(body, "more");
    onnx_output(body, "next");
    onnx_node(body, "Add", "h,unit", "sum");
    onnx_output(body, "sum");
    if (strcmp(c->trips, "range") == 0) { /* range(1, n) of TorchScript */
        onnx_node(b, "Sub", "n,one", "fewer");
        onnx_node(b, "Cast", "fewer", "real");
        onnx_attr_int(b, "to", MDOT_DTYPE_F32);
        onnx_node(b, "Div", "real,unit", "quotient");
        onnx_node(b, "Ceil", "quotient", "ceiling");
        onnx_node(b, "Cast", "ceiling", "range");
        onnx_attr_int(b, "to", MDOT_DTYPE_I64);
    }
    snprintf(names, sizeof names, "%s,yes,two,nothing", c->trips);
    onnx_node(b, "Loop", names, "c,count");
    onnx_attr_graph(b, "body", body);
    return b;
}

/* The counter starts at two. */
static void conditions_on_counters_count_the_steps(void **state)
{
    (void)state;
    static const condition conditions[] = {
        {"Less", "next", "seven", false, "", "[5]"},
        {"Less", "next", "seven", false, "three", "[3]"},
        {"Less", "next", "seven", false, "most", "[5]"},
        {"Less", "i", "seven", false, "", "[6]"},
        {"LessOrEqual", "next", "seven", false, "", "[6]"},
        {"Greater", "seven", "next", false, "", "[5]"},
        {"GreaterOrEqual", "seven", "next", false, "", "[6]"},
        {"GreaterOrEqual", "next", "seven", true, "", "[5]"},
        {"Greater", "next", "seven", true, "", "[6]"},
        {"Less", "seven", "next", true, "", "[6]"},
        {"LessOrEqual", "seven", "next", true, "", "[5]"},
        {"Less", "step", "seven", false, "", "[8]"},
        {"Less", "next", "two", false, "", "[1]"}, /* the condition comes behind a step */
    };
    for (size_t k = 0; k < sizeof conditions / sizeof *conditions; k++) {
        char text[128];
        snprintf(text, sizeof text, "x = input f32[L,4]\nf = constant f32[] %s\ncount = Identity(f)\nreturn count\n",
                 conditions[k].steps);
        expect_same(counting_loop(&conditions[k]), text);
    }
    static const condition by_length[] = {{"Less", "step", "n", false, "n", ""},
                                          {"Less", "step", "n", false, "most", ""},
                                          {"Less", "step", "n", false, "range", ""}};
    static const int counts[] = {0, 1, -1}; /* beside the length */
    for (size_t k = 0; k < 3; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "x = input f32[L,4]\ns = Shape(x) {start=0, end=1}\nn = Squeeze(s)\ne = constant i64[] [%d]\n"
                 "m = Add(n, e)\ncount = Cast(m) {to=1}\nreturn count\n",
                 counts[k]);
        expect_same(counting_loop(&by_length[k]), text);
    }
}

static void steps_that_depend_on_data_are_refused(void **state)
{
    (void)state;
    static const condition conditions[] = {
        {"Less", "next", "flag", false, "", ""},   /* the bound is an input */
        {"Less", "two", "seven", false, "", ""},   /* it never ends */
        {"Equal", "next", "seven", false, "", ""}, /* no order comparison */
        {"Less", "next", "seven", false, "flag", ""},
    };
    for (size_t k = 0; k < sizeof conditions / sizeof *conditions; k++) {
        onnx_builder *b = counting_loop(&conditions[k]);
        onnx_input(b, "flag", MDOT_DTYPE_I64, "");
        expect_unsupported(b, "the number of steps must be constant, or affine in the length");
    }
}

/* A state that grows by x in each step: only for unrolled loops. */
static onnx_builder *growing_loop(const char *steps)
{
    static const char *const outputs[] = {"y", "z", NULL};
    onnx_builder *b = begin(outputs), *body = loop_body();
    body_input(body, "a");
    onnx_node(body, "Cast", "go", "more");
    onnx_attr_int(body, "to", MDOT_DTYPE_BOOL);
    onnx_output(body, "more");
    onnx_node(body, "Cast", "step", "number");
    onnx_attr_int(body, "to", MDOT_DTYPE_F32);
    onnx_node(body, "Mul", "x,number", "scaled");
    onnx_node(body, "Concat", "a,scaled", "longer");
    onnx_attr_int(body, "axis", 0);
    onnx_output(body, "longer");
    onnx_output(body, "scaled");
    char inputs[32];
    snprintf(inputs, sizeof inputs, "%s,yes,x", steps);
    onnx_node(b, "Loop", inputs, "y,z");
    onnx_attr_graph(b, "body", body);
    return b;
}

static void a_small_constant_number_of_steps_is_unrolled(void **state)
{
    (void)state;
    expect_same(growing_loop("three"),
                "x = input f32[L,4]\nn = constant f32[] [0]\nt = constant f32[] [2]\nnothing = Mul(x, n)\n"
                "twice = Mul(x, t)\ny = Concat(x, nothing, x, twice) {axis=0}\naxes = constant i64[1] [0]\n"
                "a = Unsqueeze(nothing, axes)\nb = Unsqueeze(x, axes)\nc = Unsqueeze(twice, axes)\n"
                "z = Concat(a, b, c) {axis=0}\nreturn y, z\n");
    imported m = expect_imported(growing_loop("three"), NULL);
    assert_int_equal(count_loops(m.graph), 0);
    release(&m);
}

static void many_steps_are_not_unrolled(void **state)
{
    (void)state;
    onnx_builder *b = growing_loop("many");
    static const int64_t many = 2000;
    onnx_initializer(b, "many", MDOT_DTYPE_I64, "", &many);
    imported m = expect_imported(b, NULL);
    mdot_error err = {0};
    assert_int_equal(count_loops(m.graph), 1);
    assert_int_equal(ir_infer(m.graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a state must keep its type and shape"));
    release(&m);
}

/* A hostile or faulty model could otherwise run for days when the artefact is tried. */
static void too_many_steps_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = growing_loop("many");
    static const int64_t many = (1 << 24) + 1;
    onnx_initializer(b, "many", MDOT_DTYPE_I64, "", &many);
    imported m = expect_imported(b, NULL);
    mdot_error err = {0};
    assert_int_equal(ir_infer(m.graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "it has 16777217 steps; a loop may have at most 16777216"));
    release(&m);
}

/* An outer loop over the length around an inner loop. */
static onnx_builder *nested_loops(const char *inner_steps)
{
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs), *outer = loop_body(), *inner = onnx_begin(21);
    onnx_input(inner, "k", MDOT_DTYPE_I64, "");
    onnx_input(inner, "on", MDOT_DTYPE_BOOL, "");
    body_input(inner, "a");
    onnx_output(inner, "on");
    onnx_node(inner, "Add", "a,row", "sum"); /* a name in the outer body */
    onnx_output(inner, "sum");
    body_input(outer, "h");
    onnx_output(outer, "go");
    onnx_node(outer, "Gather", "x,step", "row");
    char inputs[32];
    snprintf(inputs, sizeof inputs, "%s,yes,h", inner_steps);
    onnx_node(outer, "Loop", inputs, "more");
    onnx_attr_graph(outer, "body", inner);
    onnx_output(outer, "more");
    onnx_node(b, "Loop", "n,yes,h0", "y");
    onnx_attr_graph(b, "body", outer);
    return b;
}

static void an_inner_loop_must_be_unrolled(void **state)
{
    (void)state;
    expect_same(nested_loops("three"), "x = input f32[L,4]\naxes = constant i64[1] [0]\n"
                                       "s = ReduceSum(x, axes) {keepdims=0}\nt = constant f32[] [3]\ny = Mul(s, t)\n"
                                       "return y\n");
    expect_unsupported(nested_loops("n"), "an inner loop must have a constant number of steps");
}

static void branches_may_have_initializers(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", NULL};
    static const float numbers[] = {1, 2, 3, 4};
    onnx_builder *b = begin(outputs), *first = onnx_begin(21), *second = onnx_begin(21);
    onnx_initializer(first, "c", MDOT_DTYPE_F32, "4", numbers);
    onnx_node(first, "Mul", "x,c", "r");
    onnx_output(first, "r");
    onnx_initializer(second, "c", MDOT_DTYPE_F32, "4", numbers);
    onnx_node(second, "Sub", "x,c", "r");
    onnx_output(second, "r");
    onnx_node(b, "Gather", "x,zero", "row");
    onnx_node(b, "ReduceSum", "row", "sum");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "Cast", "zero", "limit");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_node(b, "Less", "sum,limit", "below");
    onnx_node(b, "If", "below", "y");
    onnx_attr_graph(b, "then_branch", first);
    onnx_attr_graph(b, "else_branch", second);
    expect_same(b, "x = input f32[L,4]\ni = constant i64[] [0]\nrow = Gather(x, i)\nz = constant f32[] [0]\n"
                   "s = ReduceSum(row) {keepdims=0}\nbelow = Less(s, z)\nc = constant f32[4] [1, 2, 3, 4]\n"
                   "p = Mul(x, c)\nd = Sub(x, c)\ny = Where(below, p, d)\nreturn y\n");
}

static void a_loop_without_effect_copies_its_states(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs), *body = loop_body();
    body_input(body, "h");
    onnx_output(body, "go");
    onnx_output(body, "h");
    onnx_node(b, "Loop", "n,yes,x", "y");
    onnx_attr_graph(b, "body", body);
    expect_same(b, "x = input f32[L,4]\ny = Identity(x)\nreturn y\n");
}

/* Names in a body hide those outside. The condition is a state here, false behind the first step; an outer constant has
 * its name and is true. */
static void a_condition_may_have_the_name_of_a_constant(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", NULL};
    static const unsigned char no = 0;
    onnx_builder *b = begin(outputs), *body = loop_body();
    onnx_initializer(b, "no", MDOT_DTYPE_BOOL, "", &no);
    body_input(body, "h");
    onnx_input(body, "yes", MDOT_DTYPE_BOOL, "");
    onnx_output(body, "yes");
    onnx_node(body, "Add", "h,h", "sum");
    onnx_output(body, "sum");
    onnx_output(body, "yes");
    onnx_node(b, "Loop", "three,,x,no", "y");
    onnx_attr_graph(b, "body", body);
    expect_same(b, "x = input f32[L,4]\ny = Add(x, x)\nreturn y\n");
}

/* `type` is the type of a node that reads its own result. */
static onnx_builder *cyclic_loop(const char *type)
{
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs), *body = loop_body();
    body_input(body, "h");
    onnx_node(body, type, "c", "c");
    onnx_attr_int(body, "to", MDOT_DTYPE_BOOL);
    onnx_output(body, "c");
    onnx_node(body, "Relu", "h", "r");
    onnx_output(body, "r");
    onnx_node(b, "Loop", "three,yes,h0", "y");
    onnx_attr_graph(b, "body", body);
    return b;
}

static void conditions_that_read_themselves_are_malformed(void **state)
{
    (void)state;
    expect_refused(cyclic_loop("Cast"), NULL, MDOT_MALFORMED, "cycle", NULL);
    expect_refused(cyclic_loop("Identity"), NULL, MDOT_MALFORMED, "cycle", NULL);
}

/* Every state is the last Identity, so following each state anew would read all of them for each. */
static void long_chains_of_identities_are_read_once(void **state)
{
    (void)state;
    enum { LINKS = 20000 };
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs), *body = loop_body();
    static char inputs[6 + 2 * LINKS + 1] = "n,yes";
    char name[32], before[32] = "s0", *at = inputs + strlen(inputs);
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        body_input(body, name);
        at = stpcpy(at, ",x");
    }
    onnx_output(body, "go");
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        onnx_node(body, "Identity", before, name);
        memcpy(before, name, sizeof before);
    }
    for (int i = 0; i < LINKS; i++) onnx_output(body, name);
    onnx_node(b, "Loop", inputs, "y");
    onnx_attr_graph(b, "body", body);
    expect_same(b, "x = input f32[L,4]\ny = Identity(x)\nreturn y\n");
}

static void bodies_with_faulty_names_are_malformed(void **state)
{
    (void)state;
    static const char *const outputs[] = {"y", NULL};
    onnx_builder *b = begin(outputs), *body = loop_body();
    body_input(body, "go");
    onnx_output(body, "go");
    onnx_node(body, "Relu", "go", "r");
    onnx_output(body, "r");
    onnx_node(b, "Loop", "n,yes,h0", "y");
    onnx_attr_graph(b, "body", body);
    expect_refused(b, NULL, MDOT_MALFORMED, "input 2 of the body, 'go', has no name of its own", NULL);
    b = begin(outputs);
    body = loop_body();
    body_input(body, "h");
    onnx_initializer(body, "h", MDOT_DTYPE_F32, "4", zeros);
    onnx_output(body, "go");
    onnx_node(body, "Relu", "h", "r");
    onnx_output(body, "r");
    onnx_node(b, "Loop", "n,yes,h0", "y");
    onnx_attr_graph(b, "body", body);
    expect_refused(b, NULL, MDOT_MALFORMED, "initializer 'h' of graph", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_runs_over_an_axis_in_either_direction),
        cmocka_unit_test(outputs_may_be_absent),
        cmocka_unit_test(other_scans_are_refused),
        cmocka_unit_test(states_that_stay_the_same_are_read_from_outside),
        cmocka_unit_test(conditions_on_counters_count_the_steps),
        cmocka_unit_test(steps_that_depend_on_data_are_refused),
        cmocka_unit_test(a_small_constant_number_of_steps_is_unrolled),
        cmocka_unit_test(many_steps_are_not_unrolled),
        cmocka_unit_test(too_many_steps_are_refused),
        cmocka_unit_test(an_inner_loop_must_be_unrolled),
        cmocka_unit_test(branches_may_have_initializers),
        cmocka_unit_test(a_loop_without_effect_copies_its_states),
        cmocka_unit_test(a_condition_may_have_the_name_of_a_constant),
        cmocka_unit_test(conditions_that_read_themselves_are_malformed),
        cmocka_unit_test(long_chains_of_identities_are_read_once),
        cmocka_unit_test(bodies_with_faulty_names_are_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
