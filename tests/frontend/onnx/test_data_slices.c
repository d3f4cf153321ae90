/* test_data_slices.c — slices by a loop's counter, and EmbeddingBag as PyTorch exports it, against their definitions.
 */
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static const int64_t zero[] = {0}, one[] = {1};
static const unsigned char yes = 1;

static onnx_builder *begin(const char *type)
{
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", strcmp(type, "ids") == 0 ? MDOT_DTYPE_I64 : MDOT_DTYPE_F32, "N");
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "1", one);
    onnx_initializer(b, "h0", MDOT_DTYPE_F32, "1", (float[]){0});
    onnx_node(b, "Shape", "x", "n");
    onnx_node(b, "Squeeze", "n", "count");
    return b;
}

static ir_wide *evaluate(onnx_builder *b, const ir_wide *input, ir_arena *arena)
{
    mdot_error err;
    ir_wide *out[1];
    imported model = expect_imported(b, NULL);
    model.graph->min_length = 4;
    model.graph->max_length = 16;
    if (ir_check_supported(model.graph, &err) != MDOT_OK || ir_infer(model.graph, &err) != MDOT_OK ||
        ir_evaluate(model.graph, (const ir_wide *const[]){input}, arena, out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    release(&model);
    return out[0];
}

/* h = h / 2 + sum of x[t + first : t + last] in `steps` steps, or from the end: x[N - last - t : N - first - t]. */
static onnx_builder *window_loop(int64_t first, int64_t last, int64_t fewer_steps, bool backward)
{
    onnx_builder *b = begin("reals"), *body = onnx_begin(21);
    onnx_initializer(b, "first", MDOT_DTYPE_I64, "", &first);
    onnx_initializer(b, "last", MDOT_DTYPE_I64, "", &last);
    onnx_initializer(b, "fewer", MDOT_DTYPE_I64, "", &fewer_steps);
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "", (float[]){0.5F});
    onnx_node(b, "Sub", "count,fewer", "steps");
    onnx_input(body, "t", MDOT_DTYPE_I64, "");
    onnx_input(body, "go", MDOT_DTYPE_BOOL, "");
    onnx_input(body, "h", MDOT_DTYPE_F32, NULL);
    onnx_node(body, "Identity", "go", "more");
    onnx_output(body, "more");
    onnx_node(body, "Sub", "count,t", "rest");
    onnx_node(body, backward ? "Sub" : "Add", backward ? "rest,last" : "t,first", "a");
    onnx_node(body, backward ? "Sub" : "Add", backward ? "rest,first" : "last,t", "b");
    onnx_node(body, "Unsqueeze", "a,zero", "start");
    onnx_node(body, "Unsqueeze", "b,zero", "end");
    onnx_node(body, "Slice", "x,start,end,zero,one", "window");
    onnx_node(body, "ReduceSum", "window,zero", "sum");
    onnx_node(body, "Mul", "h,half", "faded");
    onnx_node(body, "Add", "faded,sum", "next");
    onnx_output(body, "next");
    onnx_node(b, "Loop", "steps,yes,h0", "y");
    onnx_attr_graph(b, "body", body);
    onnx_output(b, "y");
    return b;
}

static void counted_rows_are_those_of_the_slice(void **state)
{
    (void)state;
    for (int64_t first = 0; first < 3; first++) {
        for (int64_t last = first + 1; last < 4; last++) {
            for (int backward = 0; backward < 2; backward++) {
                ir_arena *arena = ir_arena_create(0);
                ir_wide *x = ir_wide_create(arena, MDOT_DTYPE_F32, 1, (int64_t[]){9});
                double h = 0;
                for (int64_t i = 0; i < 9; i++) x->f[i] = sin((double)(i * i));
                for (int64_t t = 0; t < 9 - last + 1; t++) {
                    h /= 2;
                    for (int64_t i = first; i < last; i++) h += x->f[backward ? 9 - 1 - i - t : t + i];
                }
                const ir_wide *y = evaluate(window_loop(first, last, last - 1, backward != 0), x, arena);
                if (!(fabs(y->f[0] - h) < 1e-6)) fail_msg("%d to %d: %g, not %g", (int)first, (int)last, y->f[0], h);
                ir_arena_destroy(arena);
            }
        }
    }
}

static void rows_behind_the_tensor_are_refused(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        mdot_error err;
        imported model = expect_imported(window_loop(0, 2, 0, backward != 0), NULL);
        assert_int_equal(ir_check_supported(model.graph, &err), MDOT_UNSUPPORTED);
        if (strstr(err.message, "outside of the tensor") == NULL) fail_msg("%s", err.message);
        release(&model);
    }
}

/* Leaves out one input of each node in turn: the model is refused with the node and the input. */
static void an_absent_input_is_refused_before_a_rewrite(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs[5], *output;
    } nodes[] = {{"Add", {"t", "one"}, "end"},
                 {"Slice", {"x", "t", "end"}, "window"},
                 {"Mul", {"window", "window"}, "square"},
                 {"ReduceSum", {"square"}, "y"}};
    enum { NODES = sizeof nodes / sizeof *nodes };
    for (int changed = 0; changed < NODES; changed++) {
        for (int absent = 0; absent < 5 && nodes[changed].inputs[absent] != NULL; absent++) {
            onnx_builder *b = begin("reals");
            onnx_input(b, "t", MDOT_DTYPE_I64, "1");
            for (int i = 0; i < NODES; i++) {
                pb_buffer node = {0};
                for (int k = 0; k < 5 && nodes[i].inputs[k] != NULL; k++)
                    pb_text(&node, 1, i == changed && k == absent ? "" : nodes[i].inputs[k]);
                pb_text(&node, 2, nodes[i].output);
                pb_text(&node, 4, nodes[i].op);
                onnx_graph_raw(b, 1, &node);
            }
            onnx_output(b, "y");
            expect_refused(b, NULL, MDOT_MALFORMED, nodes[changed].op, NULL);
        }
    }
}

/* reduction(table[x[offsets[i] : offsets[i + 1]]] * weights) for bags at `offsets`. */
static onnx_builder *bag(const char *reduction, const int64_t *offsets, bool is_weighted)
{
    static const float table[8] = {1, -2, 0.5F, 3, -1, 4, 2.5F, -0.25F};
    onnx_builder *b = begin("ids"), *body = onnx_begin(21);
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "4,2", table);
    onnx_initializer(b, "offsets", MDOT_DTYPE_I64, "3", offsets);
    onnx_initializer(b, "everything", MDOT_DTYPE_I64, "1", (int64_t[]){INT64_MAX});
    onnx_initializer(b, "bags", MDOT_DTYPE_I64, "", (int64_t[]){3});
    onnx_initializer(b, "limit", MDOT_DTYPE_I64, "", (int64_t[]){1 << 20});
    onnx_node(b, "Add", "bags,limit", "large"); /* unknown as a constant: the loop stays */
    onnx_node(b, "Sub", "large,limit", "trips");
    onnx_node(b, "Concat", "offsets,n", "borders");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Slice", "borders,one,everything,zero,one", "later");
    onnx_node(b, "Cast", "x", "reals");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_input(body, "i", MDOT_DTYPE_I64, "");
    onnx_input(body, "go", MDOT_DTYPE_BOOL, "");
    onnx_node(body, "Identity", "go", "more");
    onnx_output(body, "more");
    onnx_node(body, "Gather", "borders,i", "a");
    onnx_node(body, "Gather", "later,i", "b");
    onnx_node(body, "Unsqueeze", "a,zero", "start");
    onnx_node(body, "Unsqueeze", "b,zero", "end");
    onnx_node(body, "Slice", "x,start,end,zero", "ids");
    onnx_node(body, "Gather", "table,ids", "rows");
    onnx_node(body, "Slice", "reals,start,end,zero", "weights");
    onnx_node(body, "Unsqueeze", "weights,one", "column");
    onnx_node(body, "Mul", "rows,column", "weighted");
    onnx_node(body, reduction, is_weighted ? "weighted,zero" : "rows,zero", "sum");
    onnx_attr_int(body, "keepdims", 0);
    onnx_output(body, "sum");
    onnx_node(b, "Loop", "trips,yes", "y");
    onnx_attr_graph(b, "body", body);
    onnx_output(b, "y");
    return b;
}

static void bags_reduce_their_own_rows(void **state)
{
    (void)state;
    static const double table[4][2] = {{1, -2}, {0.5, 3}, {-1, 4}, {2.5, -0.25}};
    static const int64_t offsets[][3] = {{0, 2, 5}, {0, 1, 6}, {0, 6, 6}, {0, 4, -2}};
    static const char *const reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    for (int k = 0; k < 4 * 3 * 2; k++) {
        ir_arena *arena = ir_arena_create(0);
        const int64_t *first = offsets[k / 6];
        int kind = k % 3;
        bool is_weighted = k / 3 % 2 != 0;
        ir_wide *x = ir_wide_create(arena, MDOT_DTYPE_I64, 1, (int64_t[]){7});
        for (int64_t i = 0; i < 7; i++) x->i[i] = i * i % 4 == 0 ? i % 4 : 3 - i % 3;
        const ir_wide *y = evaluate(bag(reductions[kind], first, is_weighted), x, arena);
        for (int i = 0; i < 3; i++) {
            int64_t start = first[i] < 0 ? first[i] + 7 : first[i], end = i < 2 ? first[i + 1] : 7;
            if (end < 0) end += 7;
            for (int c = 0; c < 2; c++) {
                double sum = kind == 2 ? -INFINITY : 0;
                for (int64_t r = start; r < end; r++) {
                    double value = table[x->i[r]][c] * (is_weighted ? (double)x->i[r] : 1);
                    sum = kind == 2 ? fmax(sum, value) : sum + value;
                }
                if (kind == 1) sum /= (double)(end - start);
                double got = y->f[2 * i + c];
                bool is_equal = fabs(got - sum) < 1e-6 || (isnan(got) && isnan(sum)) || (isinf(got) && got == sum);
                if (!is_equal) fail_msg("%s, bag %d: %g, not %g", reductions[kind], i, got, sum);
            }
        }
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_rows_are_those_of_the_slice),
        cmocka_unit_test(rows_behind_the_tensor_are_refused),
        cmocka_unit_test(an_absent_input_is_refused_before_a_rewrite),
        cmocka_unit_test(bags_reduce_their_own_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
