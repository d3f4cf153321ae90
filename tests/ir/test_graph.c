/* test_graph.c — building, changing, cloning and reading graphs. */
#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const ir_op *const add = &ir_ops[IR_OP_Add];
static const ir_op *const neg = &ir_ops[IR_OP_Neg];

typedef struct fixture {
    ir_arena *arena;
    ir_graph *graph;
    ir_value *x, *y;         /* inputs */
    ir_node *sum, *negation; /* sum = x + y; negation = -sum, the output */
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.arena = ir_arena_create(0);
    f.graph = ir_graph_create(f.arena, "test");
    ir_type type = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dim = {{.scale = 1}}};
    f.x = ir_graph_add_input(f.graph, "x", &type);
    f.y = ir_graph_add_input(f.graph, "y", &type);
    f.graph->symbol = "N";
    f.sum = ir_graph_add_node(f.graph, NULL, add, "sum", (ir_value *[]){f.x, f.y}, 2, 1);
    f.negation = ir_graph_add_node(f.graph, NULL, neg, "negation", f.sum->outputs, 1, 1);
    ir_graph_add_output(f.graph, f.negation->outputs[0]);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    ir_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

static void expect_valid(const ir_graph *graph)
{
    mdot_error err;
    if (ir_graph_verify(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
}

static void building_counts_uses_and_names_outputs(void **state)
{
    fixture *f = *state;
    assert_int_equal(f->x->use_count, 1);
    assert_int_equal(f->sum->outputs[0]->use_count, 1);
    assert_int_equal(f->negation->outputs[0]->use_count, 1);
    assert_string_equal(f->sum->outputs[0]->name, "sum");
    assert_string_equal(f->sum->op_type, "Add");
    assert_int_equal(f->sum->outputs[0]->type.rank, -1);
    ir_node *split = ir_graph_add_node(f->graph, NULL, &ir_ops[IR_OP_MSGelu], "two", &f->x, 1, 2);
    assert_string_equal(split->op_type, "com.microsoft.Gelu");
    assert_string_equal(split->outputs[1]->name, "two:1");
    assert_int_equal(split->outputs[1]->output, 1);
}

static void many_inputs_and_outputs_are_kept_in_order(void **state)
{
    fixture *f = *state;
    ir_value *added[40];
    for (int i = 0; i < 40; i++) added[i] = ir_graph_add_input(f->graph, "more", &f->x->type);
    assert_int_equal(f->graph->input_count, 42);
    for (int i = 0; i < 40; i++) {
        assert_ptr_equal(f->graph->inputs[i + 2], added[i]);
        assert_int_equal(added[i]->input, i + 2);
        assert_true(ir_graph_add_output(f->graph, added[i]));
    }
    expect_valid(f->graph);
}

static void nodes_go_before_a_given_one(void **state)
{
    fixture *f = *state;
    ir_node *first = ir_graph_add_node(f->graph, f->sum, neg, "first", &f->x, 1, 1);
    ir_node *middle = ir_graph_add_node(f->graph, f->negation, neg, "middle", first->outputs, 1, 1);
    assert_ptr_equal(f->graph->first, first);
    assert_ptr_equal(first->next, f->sum);
    assert_ptr_equal(f->sum->next, middle);
    assert_ptr_equal(middle->next, f->negation);
    assert_ptr_equal(f->graph->last, f->negation);
    expect_valid(f->graph);
}

static void setting_an_input_updates_uses(void **state)
{
    fixture *f = *state;
    ir_node_set_input(f->sum, 1, f->x);
    assert_int_equal(f->x->use_count, 2);
    assert_int_equal(f->y->use_count, 0);
    ir_node_set_input(f->sum, 1, NULL);
    assert_int_equal(f->x->use_count, 1);
    assert_null(ir_node_input(f->sum, 1));
    assert_null(ir_node_input(f->sum, 7));
}

static void replacing_uses_reaches_nodes_and_outputs(void **state)
{
    fixture *f = *state;
    ir_graph_add_output(f->graph, f->sum->outputs[0]);
    ir_graph_replace_uses(f->graph, f->sum->outputs[0], f->y);
    assert_int_equal(f->sum->outputs[0]->use_count, 0);
    assert_ptr_equal(f->negation->inputs[0], f->y);
    assert_ptr_equal(f->graph->outputs[1], f->y);
    assert_int_equal(f->y->use_count, 3);
    ir_graph_replace_uses(f->graph, f->y, f->y);
    assert_int_equal(f->y->use_count, 3);
    expect_valid(f->graph);
}

static void removing_dead_nodes_follows_the_chain(void **state)
{
    fixture *f = *state;
    ir_graph_set_output(f->graph, 0, f->x);
    assert_int_equal(ir_graph_remove_dead(f->graph), 2);
    assert_null(f->graph->first);
    assert_null(f->graph->last);
    assert_int_equal(f->y->use_count, 0);
    assert_int_equal(f->x->use_count, 1);
    assert_int_equal(ir_graph_remove_dead(f->graph), 0);
    expect_valid(f->graph);
}

static void a_single_user_is_found(void **state)
{
    fixture *f = *state;
    assert_ptr_equal(ir_value_single_user(f->x), f->sum);
    assert_ptr_equal(ir_value_single_user(f->sum->outputs[0]), f->negation);
    assert_null(ir_value_single_user(f->negation->outputs[0])); /* a graph output */
    ir_node *twice = ir_graph_add_node(f->graph, NULL, add, "twice", (ir_value *[]){f->y, f->y}, 2, 1);
    assert_null(ir_value_single_user(f->y)); /* two users */
    ir_node_set_input(f->sum, 1, f->x);
    assert_ptr_equal(ir_value_single_user(f->y), twice);  /* one user, reading it twice */
    assert_null(ir_value_single_user(twice->outputs[0])); /* zero users */
}

static void a_clone_shares_no_mutable_state(void **state)
{
    fixture *f = *state;
    assert_true(ir_node_set(f->graph, f->negation, IR_INT("axis", 3)));
    ir_arena *arena = ir_arena_create(0);
    ir_graph *clone = ir_graph_clone(f->graph, arena);
    expect_valid(clone);
    char *before = ir_graph_print(f->graph, arena);
    assert_string_equal(ir_graph_print(clone, arena), before);
    ir_node *copy = clone->last;
    assert_ptr_not_equal(copy, f->negation);
    assert_ptr_equal(copy->inputs[0]->def, clone->first);
    ir_node_set(clone, copy, IR_INT("axis", 4));
    ir_node_remove_attr(copy, "axis");
    ir_node_set_input(copy, 0, clone->inputs[0]);
    ir_graph_remove_dead(clone);
    for (int i = 0; i < 5; i++) ir_graph_add_output(clone, clone->inputs[1]);
    clone->max_length = 7;
    expect_valid(clone);
    assert_string_equal(ir_graph_print(f->graph, arena), before);
    expect_valid(f->graph);
    ir_arena_destroy(arena);
}

static void attributes_are_set_replaced_and_removed(void **state)
{
    fixture *f = *state;
    ir_node *node = f->sum;
    assert_int_equal(ir_node_int(node, "axis", -7), -7);
    assert_true(ir_node_set(f->graph, node, IR_INT("axis", 1)));
    assert_true(ir_node_set(f->graph, node, IR_FLOAT("alpha", 0.5)));
    assert_true(ir_node_set(f->graph, node, IR_STRING("mode", "wrap")));
    const int64_t perm[] = {2, 0, 1};
    assert_true(ir_node_set(f->graph, node, IR_INTS("perm", perm, 3)));
    assert_true(ir_node_set(f->graph, node, IR_INTS("axes", NULL, 0)));
    assert_true(ir_node_set(f->graph, node, IR_INT("axis", 2)));
    assert_int_equal(node->attr_count, 5);
    assert_int_equal(ir_node_int(node, "axis", 0), 2);
    assert_float_equal(ir_node_float(node, "alpha", 0), 0.5, 0);
    assert_string_equal(ir_node_string(node, "mode", ""), "wrap");
    assert_int_equal(ir_node_attr(node, "perm")->ints[0], 2);
    assert_int_equal(ir_node_attr(node, "axes")->count, 0);
    ir_node_remove_attr(node, "alpha");
    ir_node_remove_attr(node, "nothing");
    assert_null(ir_node_attr(node, "alpha"));
    assert_int_equal(node->attr_count, 4);
    assert_string_equal(ir_node_string(node, "mode", ""), "wrap");
}

static void an_attribute_of_another_kind_is_not_read(void **state)
{
    fixture *f = *state;
    assert_true(ir_node_set(f->graph, f->sum, IR_INT("alpha", 3)));
    assert_float_equal(ir_node_float(f->sum, "alpha", 0.25), 0.25, 0);
    assert_string_equal(ir_node_string(f->sum, "alpha", "none"), "none");
}

static ir_value *constant(fixture *f, mdot_dtype dtype, int64_t count, const void *data)
{
    ir_tensor *tensor = IR_NEW(f->arena, ir_tensor);
    *tensor = (ir_tensor){.dtype = dtype, .rank = 1, .dims = {count}, .count = count, .data = data};
    return ir_graph_add_constant(f->graph, "constant", tensor);
}

static void integers_of_all_widths_are_known(void **state)
{
    fixture *f = *state;
    static const struct {
        mdot_dtype dtype;
        unsigned char bytes[8];
        int64_t value;
    } cases[] = {
        {MDOT_DTYPE_U8, {0xff}, 255},
        {MDOT_DTYPE_I8, {0xff}, -1},
        {MDOT_DTYPE_U16, {0xfe, 0xff}, 65534},
        {MDOT_DTYPE_I16, {0xfe, 0xff}, -2},
        {MDOT_DTYPE_I32, {0xfd, 0xff, 0xff, 0xff}, -3},
        {MDOT_DTYPE_I64, {0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -4},
        {MDOT_DTYPE_BOOL, {1}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t out[IR_MAX_KNOWN];
        int count = 0;
        assert_true(ir_value_ints(constant(f, cases[i].dtype, 1, cases[i].bytes), out, &count));
        assert_int_equal(count, 1);
        assert_int_equal(out[0], cases[i].value);
    }
}

static void unknown_content_is_not_returned(void **state)
{
    fixture *f = *state;
    int64_t out[IR_MAX_KNOWN];
    ir_dim dims[IR_MAX_KNOWN];
    int count = 0;
    static const int64_t many[IR_MAX_KNOWN + 1];
    static const float fraction = 0.5f;
    static const uint64_t beyond = UINT64_MAX;
    assert_false(ir_value_ints(f->x, out, &count));
    assert_false(ir_value_ints(constant(f, MDOT_DTYPE_I64, IR_MAX_KNOWN + 1, many), out, &count));
    assert_false(ir_value_ints(constant(f, MDOT_DTYPE_F32, 1, &fraction), out, &count));
    assert_false(ir_value_ints(constant(f, MDOT_DTYPE_U64, 1, &beyond), out, &count));
    /* the data was not read from the file */
    assert_false(ir_value_ints(constant(f, MDOT_DTYPE_I64, 1, NULL), out, &count));
    f->x->known = &(const ir_known){1, (const ir_dim[]){{.scale = 1}}};
    assert_true(ir_value_known(f->x, dims, &count));
    assert_false(ir_value_ints(f->x, out, &count)); /* a length is symbolic */
}

static void scalars_of_all_types_are_read(void **state)
{
    fixture *f = *state;
    double out = 0;
    static const float single = 0.5f;
    static const uint16_t half = 0x3c00, brain = 0x4000;
    static const uint64_t large = UINT64_MAX;
    static const int32_t integer = -3, pair[2] = {1, 2};
    assert_true(ir_value_scalar(constant(f, MDOT_DTYPE_F32, 1, &single), &out));
    assert_float_equal(out, 0.5, 0);
    assert_true(ir_value_scalar(constant(f, MDOT_DTYPE_F16, 1, &half), &out));
    assert_float_equal(out, 1, 0);
    assert_true(ir_value_scalar(constant(f, MDOT_DTYPE_BF16, 1, &brain), &out));
    assert_float_equal(out, 2, 0);
    assert_true(ir_value_scalar(constant(f, MDOT_DTYPE_U64, 1, &large), &out));
    assert_float_equal(out, 0x1p64, 0);
    assert_true(ir_value_scalar(constant(f, MDOT_DTYPE_I32, 1, &integer), &out));
    assert_float_equal(out, -3, 0);
    assert_false(ir_value_scalar(constant(f, MDOT_DTYPE_I32, 2, pair), &out));
    assert_false(ir_value_scalar(f->x, &out));
}

static void counting_at_a_length_checks_overflow(void **state)
{
    (void)state;
    ir_type type = {.dtype = MDOT_DTYPE_F32, .rank = 2, .dim = {{.scale = 2, .offset = 1}, {.offset = 3}}};
    assert_int_equal(ir_type_count_at(&type, 10), 63);
    type.dim[0] = ir_dim_affine(INT64_MAX, 0);
    assert_int_equal(ir_type_count_at(&type, 2), -1);
    type.dim[0] = ir_dim_affine(1, -5);
    assert_int_equal(ir_type_count_at(&type, 2), -1);
    type.rank = -1;
    assert_int_equal(ir_type_count_at(&type, 2), -1);
}

/* Each allocation in building and cloning fails once, and each failure is reported. */
static void exhausted_memory_is_reported(void **state)
{
    fixture *f = *state;
    for (size_t limit = 64; limit < 6000; limit += 48) {
        ir_arena *arena = ir_arena_create(limit);
        ir_graph *clone = ir_graph_clone(f->graph, arena);
        assert_int_equal(clone == NULL, ir_arena_failed(arena));
        ir_graph *graph = ir_graph_create(arena, "g");
        ir_value *x = graph ? ir_graph_add_input(graph, "x", &f->x->type) : NULL;
        ir_node *node = x ? ir_graph_add_node(graph, NULL, neg, "n", &x, 1, 1) : NULL;
        if (!node || !ir_node_set(graph, node, IR_INT("axis", 1))) assert_true(ir_arena_failed(arena));
        if (x && !node) assert_int_equal(x->use_count, 0);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(building_counts_uses_and_names_outputs),
        CASE(many_inputs_and_outputs_are_kept_in_order),
        CASE(nodes_go_before_a_given_one),
        CASE(setting_an_input_updates_uses),
        CASE(replacing_uses_reaches_nodes_and_outputs),
        CASE(removing_dead_nodes_follows_the_chain),
        CASE(a_single_user_is_found),
        CASE(a_clone_shares_no_mutable_state),
        CASE(attributes_are_set_replaced_and_removed),
        CASE(an_attribute_of_another_kind_is_not_read),
        CASE(integers_of_all_widths_are_known),
        CASE(unknown_content_is_not_returned),
        CASE(scalars_of_all_types_are_read),
        CASE(counting_at_a_length_checks_overflow),
        CASE(exhausted_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
