/* test_joined_axes.c — the law of frontend/onnx/pairs.c: a model that joins the axes of pairs of positions computes
 * the same at an open length as with its numbers, where N * N is an ordinary extent. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct op {
    const char *type, *inputs, *output;
    int axis, keepdims; /* -9: absent */
} op;

/* Constants of every model: shapes, lists of axes and weights. `pairs` is x [2, 3, N, N] as [2, 3, N * N], and `last`
 * as [2, N * N, 3]. */
static onnx_builder *begin(const char *shape)
{
    static const float weights[12] = {0.5F, -1, 2, 0.25F, 1, -0.5F, 0.75F, 3, -2, 1.5F, -0.75F, 1};
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "join", MDOT_DTYPE_I64, "3", (int64_t[]){0, 0, -1});
    onnx_initializer(b, "rows", MDOT_DTYPE_I64, "2", (int64_t[]){-1, 3});
    onnx_initializer(b, "0", MDOT_DTYPE_I64, "1", (int64_t[]){0});
    onnx_initializer(b, "1", MDOT_DTYPE_I64, "1", (int64_t[]){1});
    onnx_initializer(b, "2", MDOT_DTYPE_I64, "1", (int64_t[]){2});
    onnx_initializer(b, "both", MDOT_DTYPE_I64, "2", (int64_t[]){1, 2});
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "3,4", weights);
    onnx_initializer(b, "wt", MDOT_DTYPE_F32, "4,3", weights);
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "4", weights);
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "3", weights);
    onnx_initializer(b, "column", MDOT_DTYPE_F32, "3,1", weights);
    onnx_initializer(b, "more", MDOT_DTYPE_F32, "2,2,3,1", weights);
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "", weights);
    onnx_node(b, "Reshape", "x,join", "pairs");
    onnx_node(b, "Transpose", "pairs", "last");
    onnx_attr_ints(b, "perm", 3, (int64_t[]){0, 2, 1});
    onnx_node(b, "Transpose", "x", "moved");
    onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 2, 3, 1});
    onnx_node(b, "Shape", "x", "shape");
    return b;
}

static ir_wide *result_of(const op *ops, const char *shape, int64_t length, ir_arena *arena, bool *out_compiles)
{
    onnx_builder *b = begin(shape);
    mdot_error err;
    for (const op *o = ops; o->type != NULL; o++) {
        onnx_node(b, o->type, o->inputs, o->output);
        if (o->axis != -9) onnx_attr_int(b, "axis", o->axis);
        if (o->keepdims != -9) onnx_attr_int(b, "keepdims", o->keepdims);
        if (strcmp(o->type, "Gemm") == 0) onnx_attr_int(b, "transB", 1);
    }
    onnx_output(b, "y");
    imported model = expect_imported(b, NULL);
    model.graph->max_length = 9;
    ir_wide *out[1] = {NULL};
    int64_t dims[] = {2, 3, length, length};
    ir_wide *input = ir_wide_create(arena, MDOT_DTYPE_F32, 4, dims);
    for (int64_t i = 0; i < input->count; i++) input->f[i] = sin(0.7 * (double)(i * i % 97)) * 3;
    *out_compiles = ir_infer(model.graph, &err) == MDOT_OK;
    if (*out_compiles && ir_evaluate(model.graph, (const ir_wide *const[]){input}, arena, out, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    if (!*out_compiles && strchr(shape, 'N') == NULL) fail_msg("%s", err.message);
    release(&model);
    return out[0];
}

static void expect_law(const op *ops, bool compiles)
{
    for (int64_t length = 1; length <= 5; length++) {
        ir_arena *arena = ir_arena_create(0);
        char shape[32];
        bool done;
        snprintf(shape, sizeof shape, "2,3,%d,%d", (int)length, (int)length);
        const ir_wide *wanted = result_of(ops, shape, length, arena, &done);
        const ir_wide *got = result_of(ops, "2,3,N,N", length, arena, &done);
        if (done != compiles) fail_msg("%s is%s compiled", ops->type, done ? "" : " not");
        if (done) {
            assert_int_equal(got->rank, wanted->rank);
            for (int i = 0; i < got->rank; i++) assert_int_equal(got->dims[i], wanted->dims[i]);
            for (int64_t i = 0; i < got->count; i++) {
                double g = ir_wide_get(got, i), w = ir_wide_get(wanted, i);
                bool is_nan = isnan(g) && isnan(w);
                if (!is_nan && !(fabs(g - w) <= 1e-6 * (1 + fabs(w))))
                    fail_msg("%s: element %d at length %d is %g, not %g", ops->type, (int)i, (int)length, g, w);
            }
        }
        ir_arena_destroy(arena);
    }
}

static void joined_axes_compute_what_their_numbers_compute(void **state)
{
    (void)state;
    static const op models[][6] = {
        {{"Softmax", "pairs", "s", 2, -9}, {"Reshape", "s,shape", "y", -9, -9}},
        {{"LogSoftmax", "pairs", "s", -1, -9}, {"ReduceMax", "s,2", "y", -9, 0}},
        {{"Softmax", "pairs", "s", 1, -9}, {"ReduceSumSquare", "s,2", "y", -9, 1}},
        {{"ReduceMean", "pairs,2", "m", -9, 1}, {"Sub", "pairs,m", "d", -9, -9}, {"ReduceL2", "d,2", "y", -9, 0}},
        {{"ReduceSum", "pairs,1", "m", -9, 0}, {"Softmax", "m", "s", -1, -9}, {"ReduceMax", "s,1", "y", -9, 0}},
        {{"ReduceSum", "pairs,1", "m", -9, 1}, {"Mul", "m,pairs", "s", -9, -9}, {"ReduceSum", "s,both", "y", -9, 0}},
        {{"ReduceLogSumExp", "pairs", "y", -9, 1}},
        {{"ArgMax", "pairs", "y", 2, 0}},
        {{"ArgMax", "pairs", "y", -1, 1}},
        {{"ArgMin", "last", "y", 1, 0}},
        {{"Mul", "pairs,column", "s", -9, -9}, {"Tanh", "s", "t", -9, -9}, {"ReduceSum", "t,2", "y", -9, 0}},
        {{"Mul", "more,pairs", "s", -9, -9}, {"ReduceMean", "s,1", "t", -9, 0}, {"ReduceMax", "t,2", "y", -9, 0}},
        {{"Clip", "pairs,,half", "s", -9, -9}, {"ReduceProd", "s,2", "y", -9, 0}},
        {{"Greater", "pairs,half", "g", -9, -9},
         {"Where", "g,pairs,half", "s", -9, -9},
         {"ReduceMin", "s,2", "y", -9, 0}},
        {{"MatMul", "last,w", "s", -9, -9}, {"Add", "s,bias", "t", -9, -9}, {"ReduceMax", "t,1", "y", -9, 0}},
        {{"MatMul", "pairs,last", "y", -9, -9}},
        {{"Reshape", "moved,rows", "r", -9, -9}, {"Gemm", "r,wt,bias", "s", -9, -9}, {"ReduceMean", "s,0", "y", -9, 0}},
        {{"LayerNormalization", "last,scale", "s", -1, -9}, {"ReduceSum", "s,1", "y", -9, 0}},
        {{"Unsqueeze", "pairs,1", "u", -9, -9}, {"Squeeze", "u,1", "v", -9, -9}, {"ReduceSum", "v,2", "y", -9, 0}},
        {{"Unsqueeze", "pairs,2", "u", -9, -9}, {"Mul", "u,u", "v", -9, -9}, {"Reshape", "v,shape", "y", -9, -9}},
        {{"Flatten", "x", "f", 1, -9}, {"Softmax", "f", "s", -1, -9}, {"Reshape", "s,shape", "y", -9, -9}},
        {{"Shape", "pairs", "s", -9, -9}, {"Gather", "s,2", "y", -9, -9}},
    };
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) expect_law(models[k], true);
}

static void other_readers_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const op models[][4] = {
        {{"Identity", "pairs", "y", -9, -9}},
        {{"Concat", "pairs,pairs", "s", 2, -9}, {"ReduceSum", "s,2", "y", -9, 0}},
        {{"Add", "pairs,pairs", "y", -9, -9}},
    };
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) expect_law(models[k], false);
    onnx_builder *b = begin("2,3,N,N");
    mdot_error err;
    onnx_node(b, "Identity", "pairs", "y");
    onnx_output(b, "y");
    imported model = expect_imported(b, NULL);
    model.graph->max_length = 9;
    assert_int_equal(ir_infer(model.graph, &err), MDOT_UNSUPPORTED);
    if (strstr(err.message, "product of lengths") == NULL) fail_msg("%s", err.message);
    release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_axes_compute_what_their_numbers_compute),
        cmocka_unit_test(other_readers_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
