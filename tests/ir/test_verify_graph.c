/* test_verify_graph.c — each verifier rule detects a graph that violates it. */
#include "ir/ops.h"
#include "tests/support/graph_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char valid[] = "graph \"g\" {\n"
                            "length \"N\" <= 32\n"
                            "%0 \"x\" : f32[L,4] = input\n"
                            "%1 \"w\" : f32[4] = constant [1, 2, 3, 4]\n"
                            "%2 \"sum\" : f32[L,4] = Add(%0, %1) {axis=1, mode=\"a\"}\n"
                            "%3 \"shape\" : i64[2] known [L, 4] = Shape(%2)\n"
                            "%4 \"z\" : f32[L,4] = Neg(%2)\n"
                            "return %4, %3\n"
                            "}\n";

typedef struct fixture {
    ir_arena *arena;
    ir_graph *graph;
    ir_value *x, *w, *sum, *shape, *z;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    mdot_error err;
    f.arena = ir_arena_create(0);
    assert_int_equal(ir_graph_parse(valid, NULL, f.arena, &f.graph, &err), MDOT_OK);
    ir_node *add = f.graph->first;
    f.x = add->inputs[0];
    f.w = add->inputs[1];
    f.sum = add->outputs[0];
    f.shape = add->next->outputs[0];
    f.z = f.graph->last->outputs[0];
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    ir_arena_destroy(((fixture *)*state)->arena);
    return 0;
}

static void expect_broken(const fixture *f, const char *rule)
{
    mdot_error err = {.status = MDOT_OK};
    assert_int_equal(ir_graph_verify(f->graph, &err), MDOT_MALFORMED);
    if (!strstr(err.message, rule)) fail_msg("\"%s\" does not say \"%s\"", err.message, rule);
}

static void a_valid_graph_passes(void **state)
{
    const fixture *f = *state;
    mdot_error err;
    assert_int_equal(ir_graph_verify(f->graph, &err), MDOT_OK);
}

static void links_match(void **state)
{
    const fixture *f = *state;
    f->graph->last->prev = NULL;
    expect_broken(f, "linked both ways");
    f->graph->last->prev = f->shape->def;
    f->graph->last = f->shape->def;
    expect_broken(f, "linked both ways");
}

static void values_are_defined_before_their_use(void **state)
{
    const fixture *f = *state;
    f->graph->first->inputs[0] = f->z;
    expect_broken(f, "used before its definition");
}

static void values_of_other_graphs_are_rejected(void **state)
{
    const fixture *f = *state;
    ir_value other = *f->x;
    f->graph->last->inputs[0] = &other;
    expect_broken(f, "used before its definition");
}

static void ids_are_unique_and_allocated(void **state)
{
    const fixture *f = *state;
    f->z->id = f->sum->id;
    expect_broken(f, "defined twice");
    f->z->id = 5;
    expect_broken(f, "outside of the range of allocated ids");
    f->z->id = -1;
    expect_broken(f, "outside of the range of allocated ids");
}

static void outputs_record_their_node(void **state)
{
    const fixture *f = *state;
    f->z->def = f->sum->def;
    expect_broken(f, "wrong pointer to its node");
}

static void uses_record_their_input_index(void **state)
{
    const fixture *f = *state;
    f->x->input = 1;
    expect_broken(f, "wrong index");
}

static void constants_are_not_computed(void **state)
{
    const fixture *f = *state;
    f->z->constant = f->w->constant;
    expect_broken(f, "a constant or an input");
}

static void use_counts_match(void **state)
{
    const fixture *f = *state;
    f->sum->use_count++;
    expect_broken(f, "use count is wrong");
}

static void arity_matches_the_operator_table(void **state)
{
    const fixture *f = *state;
    f->graph->first->input_count = 1;
    f->w->use_count--;
    expect_broken(f, "1 inputs");
}

static void required_inputs_are_present(void **state)
{
    const fixture *f = *state;
    ir_node_set_input(f->graph->first, 1, NULL);
    expect_broken(f, "input 1 is required");
}

static void attributes_occur_once(void **state)
{
    const fixture *f = *state;
    f->graph->first->attrs[1].name = "axis";
    expect_broken(f, "an attribute occurs twice");
}

static void ranks_and_dims_are_in_bounds(void **state)
{
    const fixture *f = *state;
    f->x->type.rank = MDOT_MAX_RANK + 1;
    expect_broken(f, "the rank is out of bounds");
    f->x->type.rank = 2;
    f->x->type.dim[1] = ir_dim_number(-4);
    expect_broken(f, "negative for some length");
    f->x->type.dim[1] = ir_dim_affine(-1, 31); /* -1 at length 32 */
    expect_broken(f, "negative for some length");
}

static void symbols_need_a_name(void **state)
{
    const fixture *f = *state;
    f->graph->symbol = NULL;
    expect_broken(f, "but the graph lacks a symbol");
}

static void constants_match_their_content(void **state)
{
    const fixture *f = *state;
    f->w->type.dtype = MDOT_DTYPE_I32;
    expect_broken(f, "differs from that of its content");
    f->w->type.dtype = MDOT_DTYPE_F32;
    ((ir_tensor *)(uintptr_t)f->w->constant)->count = 5;
    expect_broken(f, "not the product of its dimensions");
}

static void known_content_covers_all_elements(void **state)
{
    const fixture *f = *state;
    f->shape->known = &(const ir_known){1, (const ir_dim[]){{.scale = 1}}};
    expect_broken(f, "the size of known content differs");
}

static void types_match_shape_rules(void **state)
{
    const fixture *f = *state;
    f->z->type.dim[1] = ir_dim_number(5);
    expect_broken(f, "differs from the result of its operator's shape rule");
}

static void an_unfinished_graph_passes(void **state)
{
    const fixture *f = *state;
    mdot_error err;
    f->z->type = (ir_type){.rank = -1};
    f->graph->first->op = NULL;
    assert_int_equal(ir_graph_verify(f->graph, &err), MDOT_OK);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_valid_graph_passes),
        CASE(links_match),
        CASE(values_are_defined_before_their_use),
        CASE(values_of_other_graphs_are_rejected),
        CASE(ids_are_unique_and_allocated),
        CASE(outputs_record_their_node),
        CASE(uses_record_their_input_index),
        CASE(constants_are_not_computed),
        CASE(use_counts_match),
        CASE(arity_matches_the_operator_table),
        CASE(required_inputs_are_present),
        CASE(attributes_occur_once),
        CASE(ranks_and_dims_are_in_bounds),
        CASE(symbols_need_a_name),
        CASE(constants_match_their_content),
        CASE(known_content_covers_all_elements),
        CASE(types_match_shape_rules),
        CASE(an_unfinished_graph_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
