/* test_types.c — element types against ops.def. A forbidden type is refused with the node and both types. An
 * allowed type passes all later stages. */
#include "codegen/codegen.h"
#include "codegen/cpu/cpu_images.h"
#include "ir/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/op_fixture.h"
#include "tests/support/random_node.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void inputs_of_one_type_variable_have_one_type(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "is of type f64, but input 0", .op = "Clip",
                       .inputs = {"f32[2]", "f64[]", "f64[]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, but input 0", .op = "Clip", .inputs = {"f32[2]", "_", "i64[]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f16, but input 0", .op = "LayerNormalization",
                       .inputs = {"f32[2,4]", "f16[4]", "f16[4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f16, but input 0", .op = "LayerNormalization",
                       .inputs = {"f32[2,4]", "f32[4]", "f16[4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f64, but input 1", .op = "Where",
                       .inputs = {"bool[2]", "f32[2]", "f64[2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i32, but input 1", .op = "Slice",
                       .inputs = {"f32[4]", "i64[1] [0]", "i32[1] [2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f16, but input 0", .op = "Concat", .attrs = "axis=0",
                       .inputs = {"f32[4]", "f32[4]", "f16[4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f16, but input 0", .op = "Pad",
                       .inputs = {"f32[4]", "i64[2] [1, 1]", "f16[]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f64, but input 1", .op = "BatchNormalization",
                       .inputs = {"f32[1,2,3]", "f32[2]", "f64[2]", "f32[2]", "f32[2]"});
}

static void types_outside_of_the_set_are_refused(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "input 0, \"", .op = "Where", .inputs = {"i64[2]", "f32[2]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, where the operator takes bool", .op = "Where",
                       .inputs = {"i64[2]", "f32[2]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes i32, i64", .op = "Gather",
                       .inputs = {"f32[4]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i32, where the operator takes i64", .op = "Reshape",
                       .inputs = {"f32[4]", "i32[2] [2, 2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, where the operator takes f32, f16, f64, bf16", .op = "Softmax",
                       .inputs = {"i64[4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type bool, where the operator takes", .op = "MatMul",
                       .inputs = {"bool[4,4]", "bool[4,4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type u8, where the operator takes", .op = "Neg", .inputs = {"u8[4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type i64, where the operator takes i32",
                       .op = "com.microsoft.MultiHeadAttention", .attrs = "num_heads=2",
                       .inputs = {"f32[1,3,4]", "f32[1,3,4]", "f32[1,3,4]", "_", "i64[1]"});
}

static void separate_type_variables_may_differ(void **state)
{
    (void)state;
    assert_types("f32[2]", .op = "Pow", .inputs = {"f32[2]", "i64[2]"});
    assert_types("f16[2]", .op = "CastLike", .inputs = {"i64[2]", "f16[1]"});
    assert_types("f32[2,3]", .op = "OneHot", .inputs = {"i32[2]", "i64[] [3]", "f32[2]"});
    assert_types("f32[4]", .op = "Gather", .inputs = {"f32[6]", "i32[4]"});
}

/* RMSNormalization's scale and BatchNormalization's parameters may have other types than the input. */
static void norms_of_mixed_types_keep_their_values(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "x = input f16[L,8]\ns = input f32[8]\ny = RMSNormalization(x, s)\nreturn y\n",
        "x = input f32[L,8]\ns = input f16[8]\ny = RMSNormalization(x, s)\nreturn y\n",
        "x = input f64[L,8]\ns = input f32[8]\ny = RMSNormalization(x, s)\nreturn y\n",
        ("x = input f32[2,4,L]\ns = weights f32[4]\nm = input f64[4]\nv = constant f64[4] [1, 2, 3, 4]\n"
         "y = BatchNormalization(x, s, s, m, v)\nreturn y\n"),
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *before = graph_from_notation(graphs[i], 16, arena), *after = ir_graph_clone(before, arena);
        mdot_error err;
        if (ir_run_passes(after, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_same_values(before, after, 5, 2e-3);
        ir_arena_destroy(arena);
    }
}

static void declare(onnx_builder *b, const char *name, mdot_dtype dtype)
{
    pb_buffer info = {0}, type = {0}, tensor = {0};
    pb_int(&tensor, 1, dtype);
    pb_message(&type, 1, &tensor);
    pb_text(&info, 1, name);
    pb_message(&info, 2, &type);
    onnx_graph_raw(b, 12, &info);
}

static mdot_status import_and_infer(onnx_builder *b, mdot_error *err)
{
    imported model = import_model(b, NULL);
    *err = model.err;
    mdot_status status = model.status == MDOT_OK ? ir_infer(model.graph, err) : model.status;
    release(&model);
    return status;
}

static void declared_output_types_match_the_graph(void **state)
{
    (void)state;
    static const mdot_dtype declared[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F16, MDOT_DTYPE_NONE};
    for (int computed = 0; computed < 2; computed++) {
        for (int i = 0; i < 3; i++) {
            onnx_builder *b = onnx_begin(17);
            onnx_input(b, "x", MDOT_DTYPE_F32, "4");
            if (computed) onnx_node(b, "Relu", "x", "y");
            declare(b, computed ? "y" : "x", declared[i]);
            mdot_error err;
            bool is_wrong = declared[i] == MDOT_DTYPE_F16;
            assert_int_equal(import_and_infer(b, &err), is_wrong ? MDOT_MALFORMED : MDOT_OK);
            if (is_wrong) assert_non_null(strstr(err.message, "is of type f32, but declared to be of type f16"));
        }
    }
}

enum { NODES_PER_OPERATOR = 1000, COMPILED_PER_OPERATOR = 6, ARENA_BYTES = 1 << 26 };

static const mdot_dtype all_dtypes[] = {
#define DTYPE(name, value, size, text) MDOT_DTYPE_##name,
    MDOT_DTYPE_MAP(DTYPE)
#undef DTYPE
};

/* Rebuilds a graph with this node alone, where input `changed` has another type (-1: every type stays). Inputs become
 * graph inputs unless their bit in `constants` is set. */
static ir_node *rebuild(ir_graph *graph, const ir_node *from, unsigned constants, int changed, mdot_dtype dtype)
{
    ir_value *inputs[RANDOM_NODE_INPUTS] = {NULL};
    for (int i = 0; i < from->input_count; i++) {
        const ir_value *value = from->inputs[i];
        if (value == NULL) continue;
        ir_type type = value->type;
        if (i == changed) type.dtype = dtype;
        bool is_constant = (constants >> i & 1) && i != changed;
        inputs[i] = is_constant ? ir_graph_add_constant(graph, value->name, value->constant)
                                : ir_graph_add_input(graph, value->name, &type);
    }
    ir_node *node = ir_graph_add_node(graph, NULL, from->op, "the node", inputs, from->input_count, from->output_count);
    node->attrs = from->attrs;
    node->attr_count = from->attr_count;
    for (int i = 0; i < node->output_count; i++) ir_graph_add_output(graph, node->outputs[i]);
    return node;
}

/* Compiles down to object code. A graph accepted by inference must never crash or be called malformed in a later
 * stage. */
static void compile(ir_graph *graph, const char *op, bool emits)
{
    mdot_error err = {.status = MDOT_OK};
    pl_plan *plan = NULL;
    mdot_status status = ir_check_supported(graph, &err);
    if (status == MDOT_OK) status = ir_run_passes(graph, NULL, &err);
    if (status == MDOT_OK) status = ir_check_supported(graph, &err);
    if (status == MDOT_OK) status = pl_build(graph, graph->arena, &plan, &err);
    if (status == MDOT_OK) status = pl_verify(plan, &err);
    if (status == MDOT_OK && emits) {
        const cg_target target = {.kind = MDOT_IMAGE_CPU, .number = MDOT_CPU_X86_64_V3};
        const cg_options options = {.target_count = 1, .targets = &target};
        const cg_entry entry = {.name = "predict", .graph = graph, .plan_count = 1, .plans = &plan};
        cg_cpu_images images;
        status = cg_cpu_make_images(&entry, 1, &options, graph->arena, &images, &err);
        cg_cpu_images_done(&images);
    }
    if (status != MDOT_OK && status != MDOT_UNSUPPORTED) fail_msg("%s: %s", op, err.message);
}

/* Gives one input another type. The node must then be refused with name and type, or compile like any other. */
static bool change_type(const ir_node *from, unsigned constants, int input, mdot_dtype dtype, bool emits)
{
    ir_arena *arena = ir_arena_create(ARENA_BYTES);
    ir_graph *graph = ir_graph_create(arena, "test");
    ir_node *node = rebuild(graph, from, constants, input, dtype);
    mdot_error err = {.status = MDOT_OK};
    mdot_status status = ir_infer_node(graph, node, &err);
    const char *op = from->op->name;
    if (status == MDOT_MALFORMED) {
        if (strstr(err.message, "\"the node\"") == NULL || strstr(err.message, mdot_dtype_name(dtype)) == NULL)
            fail_msg("%s, input %d of type %s: %s", op, input, mdot_dtype_name(dtype), err.message);
    } else if (status == MDOT_OK) {
        compile(graph, op, emits);
    }
    ir_arena_destroy(arena);
    return status == MDOT_OK;
}

/* Returns the inputs that must stay constant for inference to accept the node, for example axes and shapes. */
static unsigned steering_inputs(const ir_node *from)
{
    unsigned constants = (1u << from->input_count) - 1;
    for (int i = 0; i < from->input_count; i++) {
        ir_arena *arena = ir_arena_create(ARENA_BYTES);
        ir_graph *graph = ir_graph_create(arena, "test");
        unsigned fewer = constants & ~(1u << i);
        if (ir_infer_node(graph, rebuild(graph, from, fewer, -1, MDOT_DTYPE_NONE), NULL) == MDOT_OK) constants = fewer;
        ir_arena_destroy(arena);
    }
    return constants;
}

static void any_type_at_any_input_is_refused_or_compiled(void **state)
{
    (void)state;
    uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
    int tried = 0;
    for (int op = 0; op < IR_OP_COUNT; op++) {
        /* These exist in pairs, around a body. */
        if (strcmp(ir_ops[op].name, "LoopBegin") == 0 || strcmp(ir_ops[op].name, "LoopEnd") == 0) continue;
        int compiled = 0;
        bool emitted[RANDOM_NODE_INPUTS][32] = {{false}};
        for (int n = 0; n < NODES_PER_OPERATOR && compiled < COMPILED_PER_OPERATOR; n++) {
            const ir_wide *tensors[RANDOM_NODE_INPUTS];
            ir_arena *arena = ir_arena_create(ARENA_BYTES);
            ir_graph *graph = ir_graph_create(arena, "test");
            ir_node *node = random_node(&random, graph, &ir_ops[op], tensors);
            bool is_good = ir_infer_node(graph, node, NULL) == MDOT_OK;
            unsigned constants = is_good ? steering_inputs(node) : 0;
            for (int i = 0; is_good && i < node->input_count; i++) {
                for (size_t d = 0; node->inputs[i] != NULL && d < sizeof all_dtypes / sizeof *all_dtypes; d++) {
                    bool *seen = &emitted[i][all_dtypes[d]];
                    *seen = change_type(node, constants, i, all_dtypes[d], !*seen) || *seen;
                }
            }
            compiled += is_good;
            ir_arena_destroy(arena);
        }
        tried += compiled > 0;
    }
    if (tried < IR_OP_COUNT * 4 / 5) fail_msg("only %d operators of %d were tried", tried, (int)IR_OP_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_of_one_type_variable_have_one_type),
        cmocka_unit_test(types_outside_of_the_set_are_refused),
        cmocka_unit_test(separate_type_variables_may_differ),
        cmocka_unit_test(norms_of_mixed_types_keep_their_values),
        cmocka_unit_test(declared_output_types_match_the_graph),
        cmocka_unit_test(any_type_at_any_input_is_refused_or_compiled),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
