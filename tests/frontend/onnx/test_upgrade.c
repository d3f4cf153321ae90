/* test_upgrade.c — nodes of old opsets are imported in the newest form with the old meaning. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SCALE_AND_SHIFT "x,scale,shift,mean,var"

/* x: f32[shape] → y */
static onnx_builder *begin_model(int opset, const char *shape)
{
    onnx_builder *b = onnx_begin(opset);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_output(b, "y");
    return b;
}

static void expect_scalar(const ir_value *value, mdot_dtype dtype, double expected)
{
    double got;
    assert_non_null(value);
    assert_int_equal(value->type.dtype, dtype);
    assert_true(ir_value_scalar(value, &got));
    assert_compare(got, ==, expected);
}

static void expect_valid(imported *m)
{
    if (ir_graph_verify(m->graph, &m->err) != MDOT_OK) fail_msg("%s", m->err.message);
    release(m);
}

/* ---- Attributes that became inputs ------------------------------------------------------------------------------- */

static void axes_become_an_input(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ir_opcode op;
        int opset;
    } cases[] = {
        {"Squeeze", IR_OP_Squeeze, 12},
        {"Unsqueeze", IR_OP_Unsqueeze, 11},
        {"ReduceSum", IR_OP_ReduceSum, 12},
        {"ReduceMean", IR_OP_ReduceMean, 17},
        {"ReduceMax", IR_OP_ReduceMax, 17},
        {"ReduceMin", IR_OP_ReduceMin, 13},
        {"ReduceProd", IR_OP_ReduceProd, 1},
        {"ReduceL1", IR_OP_ReduceL1, 17},
        {"ReduceL2", IR_OP_ReduceL2, 17},
        {"ReduceLogSum", IR_OP_ReduceLogSum, 17},
        {"ReduceLogSumExp", IR_OP_ReduceLogSumExp, 17},
        {"ReduceSumSquare", IR_OP_ReduceSumSquare, 17},
    };
    static const int64_t axes[] = {0, -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_model(cases[i].opset, "1,N,1");
        onnx_node(b, cases[i].name, "x", "y");
        onnx_attr_ints(b, "axes", 2, axes);
        imported m = expect_imported(b, NULL);
        const ir_node *node = node_of(m.graph, cases[i].op);
        expect_ints(ir_node_input(node, 1), 2, axes);
        assert_null(ir_node_attr(node, "axes"));
        expect_valid(&m);
    }
}

static void empty_axes_reduce_everything(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(11, "2,3");
    onnx_node(b, "ReduceMean", "x", "y");
    onnx_attr_ints(b, "axes", 0, NULL);
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_of(m.graph, IR_OP_ReduceMean)->input_count, 1);
    assert_null(ir_node_attr(node_of(m.graph, IR_OP_ReduceMean), "axes"));
    release(&m);
}

static void new_nodes_are_unchanged(void **state)
{
    (void)state;
    static const int64_t axes[] = {1};
    onnx_builder *b = begin_model(18, "2,3");
    onnx_initializer(b, "axes", MDOT_DTYPE_I64, "1", axes);
    onnx_node(b, "ReduceMean", "x,axes", "h");
    onnx_node(b, "Softmax", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 2);
    assert_null(ir_node_attr(node_of(m.graph, IR_OP_Softmax), "axis"));
    release(&m);
}

static void slice_bounds_become_inputs(void **state)
{
    (void)state;
    static const int64_t starts[] = {0, 1}, ends[] = {9, 2}, axes[] = {0, 1};
    onnx_builder *b = begin_model(9, "4,4");
    onnx_node(b, "Slice", "x", "y");
    onnx_attr_ints(b, "starts", 2, starts);
    onnx_attr_ints(b, "ends", 2, ends);
    onnx_attr_ints(b, "axes", 2, axes);
    imported m = expect_imported(b, NULL);
    const ir_node *slice = node_of(m.graph, IR_OP_Slice);
    assert_int_equal(slice->input_count, 4);
    expect_ints(slice->inputs[1], 2, starts);
    expect_ints(slice->inputs[2], 2, ends);
    expect_ints(slice->inputs[3], 2, axes);
    expect_valid(&m);
}

static void split_sizes_become_an_input(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3};
    onnx_builder *b = begin_model(11, "4,4");
    onnx_node(b, "Split", "x", "y,z");
    onnx_attr_ints(b, "split", 2, sizes);
    imported m = expect_imported(b, NULL);
    expect_ints(node_of(m.graph, IR_OP_Split)->inputs[1], 2, sizes);
    assert_null(ir_node_attr(node_of(m.graph, IR_OP_Split), "num_outputs"));
    expect_valid(&m);
}

static void equal_split_states_its_parts(void **state)
{
    (void)state;
    static const int opsets[] = {2, 13};
    for (size_t i = 0; i < sizeof opsets / sizeof *opsets; i++) {
        onnx_builder *b = begin_model(opsets[i], "4,6");
        onnx_node(b, "Split", "x", "y,z,u");
        imported m = expect_imported(b, NULL);
        assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Split), "num_outputs", 0), 3);
        expect_valid(&m);
    }
}

static void pads_become_inputs(void **state)
{
    (void)state;
    static const int64_t pads[] = {1, 0, 0, 2};
    for (int opset = 1; opset <= 10; opset += 9) {
        onnx_builder *b = begin_model(opset, "4,4");
        onnx_node(b, "Pad", "x", "y");
        onnx_attr_ints(b, opset < 2 ? "paddings" : "pads", 4, pads);
        onnx_attr_float(b, "value", 1.5f);
        imported m = expect_imported(b, NULL);
        expect_ints(node_of(m.graph, IR_OP_Pad)->inputs[1], 4, pads);
        expect_scalar(node_of(m.graph, IR_OP_Pad)->inputs[2], MDOT_DTYPE_F32, 1.5);
        expect_valid(&m);
    }
}

static void clip_bounds_become_inputs_of_the_inputs_type(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(6);
    onnx_input(b, "x", MDOT_DTYPE_F16, "4");
    onnx_output(b, "y");
    onnx_node(b, "Clip", "x", "y");
    onnx_attr_float(b, "max", 6);
    imported m = expect_imported(b, NULL);
    const ir_node *clip = node_of(m.graph, IR_OP_Clip);
    assert_null(clip->inputs[1]);
    expect_scalar(clip->inputs[2], MDOT_DTYPE_F16, 6);
    expect_valid(&m);
}

static void bounds_beyond_the_inputs_type_are_its_ends(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(6);
    onnx_input(b, "x", MDOT_DTYPE_I32, "4");
    onnx_output(b, "y");
    onnx_node(b, "Clip", "x", "y");
    onnx_attr_float(b, "min", -4e31f);
    onnx_attr_float(b, "max", 4e31f);
    imported m = expect_imported(b, NULL);
    const ir_node *clip = node_of(m.graph, IR_OP_Clip);
    expect_scalar(clip->inputs[1], MDOT_DTYPE_I32, INT32_MIN);
    expect_scalar(clip->inputs[2], MDOT_DTYPE_I32, INT32_MAX);
    expect_valid(&m);
}

static void clip_bounds_are_cast_where_the_type_is_unknown(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(10, "4");
    onnx_node(b, "Unknown", "x", "h");
    onnx_node(b, "Clip", "h", "y");
    onnx_attr_float(b, "min", 0);
    imported m = expect_imported(b, NULL);
    const ir_value *bound = node_of(m.graph, IR_OP_Clip)->inputs[1];
    assert_ptr_equal(bound->def, node_of(m.graph, IR_OP_CastLike));
    assert_string_equal(bound->def->inputs[1]->name, "h");
    expect_valid(&m);
}

static void top_k_count_becomes_an_input(void **state)
{
    (void)state;
    static const int64_t k = 3;
    onnx_builder *b = begin_model(9, "4,4");
    onnx_node(b, "TopK", "x", "y,i");
    onnx_attr_int(b, "k", k);
    imported m = expect_imported(b, NULL);
    expect_ints(node_of(m.graph, IR_OP_TopK)->inputs[1], 1, &k);
    expect_valid(&m);
}

static void reshape_target_becomes_an_input(void **state)
{
    (void)state;
    static const int64_t shape[] = {2, -1};
    onnx_builder *b = begin_model(4, "4");
    onnx_node(b, "Reshape", "x", "y");
    onnx_attr_ints(b, "shape", 2, shape);
    onnx_attr_ints(b, "consumed_inputs", 1, shape);
    imported m = expect_imported(b, NULL);
    expect_ints(node_of(m.graph, IR_OP_Reshape)->inputs[1], 2, shape);
    assert_int_equal(node_of(m.graph, IR_OP_Reshape)->attr_count, 0);
    expect_valid(&m);
}

static void dropout_states_its_mode(void **state)
{
    (void)state;
    static const struct {
        int opset, is_test; /* -1: the attribute is absent */
        bool training;
    } cases[] = {{6, 1, false}, {6, 0, true}, {6, -1, true}, {10, -1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_model(cases[i].opset, "4");
        onnx_node(b, "Dropout", "x", "y");
        onnx_attr_float(b, "ratio", 0.25f);
        if (cases[i].is_test >= 0) onnx_attr_int(b, "is_test", cases[i].is_test);
        imported m = expect_imported(b, NULL);
        const ir_node *dropout = node_of(m.graph, IR_OP_Dropout);
        expect_scalar(dropout->inputs[1], MDOT_DTYPE_F32, 0.25);
        if (cases[i].training)
            expect_scalar(dropout->inputs[2], MDOT_DTYPE_BOOL, 1);
        else
            assert_null(ir_node_input(dropout, 2));
        assert_int_equal(dropout->attr_count, 0);
        expect_valid(&m);
    }
}

static void old_dropout_mask_has_the_inputs_type(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(7, "4");
    onnx_node(b, "Dropout", "x", "y,mask");
    onnx_output(b, "mask");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(m.graph->outputs[1]->def, node_of(m.graph, IR_OP_CastLike));
    assert_string_equal(m.graph->outputs[1]->name, "mask");
    expect_valid(&m);
}

static void tile_along_one_axis_repeats_along_all(void **state)
{
    (void)state;
    static const int64_t tiles = 3, axis = 1, repeats[] = {1, 3, 1};
    onnx_builder *b = begin_model(5, "2,2,2");
    onnx_initializer(b, "tiles", MDOT_DTYPE_I64, "1", &tiles);
    onnx_initializer(b, "axis", MDOT_DTYPE_I64, "1", &axis);
    onnx_node(b, "Tile", "x,tiles,axis", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_of(m.graph, IR_OP_Tile)->input_count, 2);
    expect_ints(node_of(m.graph, IR_OP_Tile)->inputs[1], 3, repeats);
    expect_valid(&m);
}

/* ---- Softmax ----------------------------------------------------------------------------------------------------- */

static void softmax_on_the_last_axis_stays(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        int axis; /* 99: attribute absent; the default is 1 */
    } cases[] = {{"2,N", 99}, {"2,N,4", 2}, {"2,N,4", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_model(12, cases[i].shape);
        onnx_node(b, "Relu", "x", "h"); /* the rank must be inferred */
        onnx_node(b, "Softmax", "h", "y");
        if (cases[i].axis != 99) onnx_attr_int(b, "axis", cases[i].axis);
        imported m = expect_imported(b, NULL);
        assert_int_equal(node_count(m.graph), 2);
        assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Softmax), "axis", 0), -1);
        expect_valid(&m);
    }
}

static void softmax_over_several_axes_goes_through_a_matrix(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(11, "2,N,4");
    onnx_node(b, "LogSoftmax", "x", "h");
    onnx_node(b, "Relu", "h", "y");
    imported m = expect_imported(b, NULL);
    const ir_node *flat = node_of(m.graph, IR_OP_Flatten), *back = node_of(m.graph, IR_OP_Reshape);
    const ir_node *softmax = node_of(m.graph, IR_OP_LogSoftmax);
    assert_int_equal(ir_node_int(flat, "axis", 0), 1);
    assert_ptr_equal(softmax->inputs[0]->def, flat);
    assert_int_equal(ir_node_int(softmax, "axis", 0), -1);
    assert_ptr_equal(back->inputs[0]->def, softmax);
    assert_ptr_equal(back->inputs[1]->def, node_of(m.graph, IR_OP_Shape));
    assert_string_equal(back->outputs[0]->name, "h");
    assert_ptr_equal(node_of(m.graph, IR_OP_Relu)->inputs[0]->def, back);
    expect_valid(&m);
}

static void softmax_of_unknown_rank_goes_through_a_matrix(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(11, "2,4");
    onnx_node(b, "Unknown", "x", "h");
    onnx_node(b, "Softmax", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 5);
    assert_ptr_equal(m.graph->outputs[0]->def, node_of(m.graph, IR_OP_Reshape));
    expect_valid(&m);
}

/* ---- Broadcasting ------------------------------------------------------------------------------------------------ */

static void aligned_operand_gets_trailing_ones(void **state)
{
    (void)state;
    static const int64_t axes[] = {1, 2};
    onnx_builder *b = begin_model(6, "1,3,4,4");
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "3", NULL);
    onnx_node(b, "Add", "x,bias", "y");
    onnx_attr_int(b, "broadcast", 1);
    onnx_attr_int(b, "axis", 1);
    imported m = expect_imported(b, NULL);
    const ir_node *add = node_of(m.graph, IR_OP_Add);
    assert_int_equal(add->attr_count, 0);
    assert_ptr_equal(add->inputs[1]->def, node_of(m.graph, IR_OP_Unsqueeze));
    expect_ints(node_of(m.graph, IR_OP_Unsqueeze)->inputs[1], 2, axes);
    expect_valid(&m);
}

static void operand_aligned_at_the_end_stays(void **state)
{
    (void)state;
    static const int axes[] = {2, -1, 99}; /* 99: the attribute is absent */
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        onnx_builder *b = begin_model(6, "1,3,4");
        onnx_initializer(b, "scale", MDOT_DTYPE_F32, "4", NULL);
        onnx_node(b, "Mul", "x,scale", "y");
        onnx_attr_int(b, "broadcast", 1);
        if (axes[i] != 99) onnx_attr_int(b, "axis", axes[i]);
        imported m = expect_imported(b, NULL);
        assert_int_equal(node_count(m.graph), 1);
        assert_int_equal(node_of(m.graph, IR_OP_Mul)->attr_count, 0);
        release(&m);
    }
}

static void broadcast_that_cannot_be_aligned_is_unsupported(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(6, "1,3,4");
    onnx_node(b, "Unknown", "x", "h");
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "3", NULL);
    onnx_node(b, "Mul", "h,scale", "y");
    onnx_attr_int(b, "broadcast", 1);
    onnx_attr_int(b, "axis", 1);
    imported m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 1)->op);
    assert_non_null(strstr(node_at(m.graph, 1)->op_type, "Mul (broadcast along an axis"));
    release(&m);
}

static void computed_tile_counts_are_unsupported(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(5, "4");
    onnx_node(b, "Tile", "x,x,x", "y");
    imported m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 0)->op);
    assert_non_null(strstr(node_at(m.graph, 0)->op_type, "Tile (with computed tiles"));
    release(&m);
}

static void old_prelu_slope_is_per_channel(void **state)
{
    (void)state;
    static const int64_t axes[] = {1};
    onnx_builder *b = begin_model(6, "1,3,4");
    onnx_initializer(b, "slope", MDOT_DTYPE_F32, "3", NULL);
    onnx_node(b, "PRelu", "x,slope", "y");
    imported m = expect_imported(b, NULL);
    expect_ints(node_of(m.graph, IR_OP_Unsqueeze)->inputs[1], 1, axes);
    expect_valid(&m);
}

static void old_gemm_broadcasts_anyway(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(6, "2,3");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "3,4", NULL);
    onnx_initializer(b, "c", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "Gemm", "x,w,c", "y");
    onnx_attr_int(b, "broadcast", 1);
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_of(m.graph, IR_OP_Gemm)->attr_count, 0);
    release(&m);
}

/* ---- Defaults and types ------------------------------------------------------------------------------------------ */

static void cast_by_name_becomes_a_number(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(5, "4");
    onnx_node(b, "Cast", "x", "y");
    onnx_attr_string(b, "to", "INT64");
    imported m = expect_imported(b, NULL);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Cast), "to", 0), MDOT_DTYPE_I64);
    release(&m);
}

static void old_concat_defaults_to_axis_one(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(3, "4,4");
    onnx_node(b, "Concat", "x,x", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Concat), "axis", 0), 1);
    release(&m);
}

static void old_selu_keeps_its_rounded_constants(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(5, "4");
    onnx_node(b, "Selu", "x", "y");
    imported m = expect_imported(b, NULL);
    assert_compare((float)ir_node_float(node_of(m.graph, IR_OP_Selu), "alpha", 0), ==, 1.6732f);
    assert_compare((float)ir_node_float(node_of(m.graph, IR_OP_Selu), "gamma", 0), ==, 1.0507f);
    release(&m);
}

static void constant_of_shape_states_its_zero(void **state)
{
    (void)state;
    static const int64_t dims[] = {2};
    onnx_builder *b = begin_model(20, "4");
    onnx_initializer(b, "dims", MDOT_DTYPE_I64, "1", dims);
    onnx_node(b, "ConstantOfShape", "dims", "y");
    imported m = expect_imported(b, NULL);
    const ir_attr *value = ir_node_attr(node_of(m.graph, IR_OP_ConstantOfShape), "value");
    assert_non_null(value);
    assert_int_equal(value->tensor->dtype, MDOT_DTYPE_F32);
    assert_int_equal(value->tensor->count, 1);
    assert_compare(*(const float *)value->tensor->data, ==, 0);
    release(&m);
}

static void scatter_is_scatter_elements(void **state)
{
    (void)state;
    onnx_builder *b = begin_model(9, "4");
    onnx_initializer(b, "i", MDOT_DTYPE_I64, "1", NULL);
    onnx_initializer(b, "u", MDOT_DTYPE_F32, "1", NULL);
    onnx_node(b, "Scatter", "x,i,u", "y");
    imported m = expect_imported(b, NULL);
    (void)node_of(m.graph, IR_OP_ScatterElements);
    release(&m);
}

/* ---- Normalization ----------------------------------------------------------------------------------------------- */

static onnx_builder *begin_norm(int opset, const char *channels)
{
    onnx_builder *b = begin_model(opset, "1,4,2,2");
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, channels, NULL);
    onnx_initializer(b, "shift", MDOT_DTYPE_F32, channels, NULL);
    onnx_initializer(b, "mean", MDOT_DTYPE_F32, channels, NULL);
    onnx_initializer(b, "var", MDOT_DTYPE_F32, channels, NULL);
    return b;
}

static void batch_normalization_states_its_mode(void **state)
{
    (void)state;
    static const struct {
        int opset, is_test; /* -1: the attribute is absent */
        const char *outputs;
        int training;
    } cases[] = {{6, 1, "y", 0}, {6, -1, "y", 1}, {9, -1, "y", 0}, {9, -1, "y,m,v", 1}, {7, -1, "y", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_norm(cases[i].opset, "4");
        onnx_node(b, "BatchNormalization", SCALE_AND_SHIFT, cases[i].outputs);
        if (cases[i].is_test >= 0) onnx_attr_int(b, "is_test", cases[i].is_test);
        if (cases[i].opset < 9) onnx_attr_int(b, "spatial", 1);
        imported m = expect_imported(b, NULL);
        const ir_node *node = node_of(m.graph, IR_OP_BatchNormalization);
        assert_int_equal(ir_node_int(node, "training_mode", 9), cases[i].training);
        assert_int_equal(node->attr_count, 1);
        release(&m);
    }
}

static void batch_normalization_without_a_successor_is_unsupported(void **state)
{
    (void)state;
    onnx_builder *b = begin_norm(7, "4");
    onnx_node(b, "BatchNormalization", SCALE_AND_SHIFT, "y");
    onnx_attr_int(b, "spatial", 0);
    imported m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 0)->op);
    release(&m);
    b = begin_norm(9, "4");
    onnx_node(b, "BatchNormalization", SCALE_AND_SHIFT, "y,m,v,sm,sv");
    m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 0)->op);
    release(&m);
}

static void group_normalization_repeats_per_channel(void **state)
{
    (void)state;
    static const int64_t grid[] = {2, 2}, channels[] = {4};
    onnx_builder *b = begin_norm(18, "2");
    onnx_node(b, "GroupNormalization", "x,scale,shift", "y");
    onnx_attr_int(b, "num_groups", 2);
    imported m = expect_imported(b, NULL);
    const ir_node *reshape = node_of(m.graph, IR_OP_GroupNormalization)->inputs[2]->def;
    assert_ptr_equal(reshape->op, &ir_ops[IR_OP_Reshape]);
    expect_ints(reshape->inputs[1], 1, channels);
    expect_ints(reshape->inputs[0]->def->inputs[1], 2, grid);
    expect_valid(&m);
}

static void groups_that_do_not_divide_the_channels_are_unsupported(void **state)
{
    (void)state;
    onnx_builder *b = begin_norm(18, "3");
    onnx_node(b, "GroupNormalization", "x,scale,shift", "y");
    onnx_attr_int(b, "num_groups", 3);
    imported m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 0)->op);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_become_an_input),
        cmocka_unit_test(empty_axes_reduce_everything),
        cmocka_unit_test(new_nodes_are_unchanged),
        cmocka_unit_test(slice_bounds_become_inputs),
        cmocka_unit_test(split_sizes_become_an_input),
        cmocka_unit_test(equal_split_states_its_parts),
        cmocka_unit_test(pads_become_inputs),
        cmocka_unit_test(clip_bounds_become_inputs_of_the_inputs_type),
        cmocka_unit_test(bounds_beyond_the_inputs_type_are_its_ends),
        cmocka_unit_test(clip_bounds_are_cast_where_the_type_is_unknown),
        cmocka_unit_test(top_k_count_becomes_an_input),
        cmocka_unit_test(reshape_target_becomes_an_input),
        cmocka_unit_test(dropout_states_its_mode),
        cmocka_unit_test(old_dropout_mask_has_the_inputs_type),
        cmocka_unit_test(tile_along_one_axis_repeats_along_all),
        cmocka_unit_test(softmax_on_the_last_axis_stays),
        cmocka_unit_test(softmax_over_several_axes_goes_through_a_matrix),
        cmocka_unit_test(softmax_of_unknown_rank_goes_through_a_matrix),
        cmocka_unit_test(aligned_operand_gets_trailing_ones),
        cmocka_unit_test(operand_aligned_at_the_end_stays),
        cmocka_unit_test(broadcast_that_cannot_be_aligned_is_unsupported),
        cmocka_unit_test(computed_tile_counts_are_unsupported),
        cmocka_unit_test(old_prelu_slope_is_per_channel),
        cmocka_unit_test(old_gemm_broadcasts_anyway),
        cmocka_unit_test(cast_by_name_becomes_a_number),
        cmocka_unit_test(old_concat_defaults_to_axis_one),
        cmocka_unit_test(old_selu_keeps_its_rounded_constants),
        cmocka_unit_test(constant_of_shape_states_its_zero),
        cmocka_unit_test(scatter_is_scatter_elements),
        cmocka_unit_test(batch_normalization_states_its_mode),
        cmocka_unit_test(batch_normalization_without_a_successor_is_unsupported),
        cmocka_unit_test(group_normalization_repeats_per_channel),
        cmocka_unit_test(groups_that_do_not_divide_the_channels_are_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
