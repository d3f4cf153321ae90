/* op_fixture.c — single operators from text; see op_fixture.h. */
#include "tests/support/op_fixture.h"
#include "tests/support/graph_parser.h"
#include "tests/support/infer_graph.h"

#include "ir/ops.h"
#include "ir/ops/families.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct one_node {
    ir_arena *arena;
    ir_graph *graph;
    ir_node *node;
} one_node;

/* Prints "[0, 1, 2, …]" with as many elements as the shape in `type`. */
static void print_counting(FILE *out, const char *type)
{
    long count = 1;
    for (const char *p = strchr(type, '[') + 1; *p != ']'; p += *p == ',') {
        char *end;
        count *= strtol(p, &end, 10);
        p = end;
    }
    for (long i = 0; i < count; i++) fprintf(out, "%s%ld", i ? ", " : "[", i);
    fprintf(out, count ? "]" : "[]");
}

static void print_input(FILE *out, int id, const char *input)
{
    const char *shape_end = strchr(input, ']') + 1;
    fprintf(out, "%%%d \"in%d\" : ", id, id);
    if (strcmp(shape_end, " 0..") == 0) {
        fprintf(out, "%.*s = constant ", (int)(shape_end - input), input);
        print_counting(out, input);
    } else if (strncmp(shape_end, " [", 2) == 0) {
        fprintf(out, "%.*s = constant%s", (int)(shape_end - input), input, shape_end);
    } else {
        fprintf(out, "%s = input", input);
    }
    fputc('\n', out);
}

static bool is_given(const op_case *c, int output) { return !c->only || c->only[output] != '_'; }

static void print_case(FILE *out, const op_case *c)
{
    int input_count = 0, output_count = c->output_count ? c->output_count : 1;
    fprintf(out, "graph \"test\" {\n length \"L\" <= 64\n");
    for (; c->inputs[input_count]; input_count++) {
        if (strcmp(c->inputs[input_count], "_") != 0) print_input(out, input_count, c->inputs[input_count]);
    }
    for (int i = 0; i < output_count; i++) {
        fprintf(out, i ? ", " : " ");
        fprintf(out, is_given(c, i) ? "%%%d \"out%d\" : ?[*]" : "_", input_count + i, i);
    }
    fprintf(out, " = %s(", c->op);
    for (int i = 0; i < input_count; i++) {
        fprintf(out, "%s", i ? ", " : "");
        fprintf(out, strcmp(c->inputs[i], "_") == 0 ? "_" : "%%%d", i);
    }
    fprintf(out, ") @\"node\"");
    if (c->attrs) fprintf(out, " {%s}", c->attrs);
    fprintf(out, "\n return");
    const char *separator = " ";
    for (int i = 0; i < output_count; i++) {
        if (!is_given(c, i)) continue;
        fprintf(out, "%s%%%d", separator, input_count + i);
        separator = ", ";
    }
    fprintf(out, "\n}\n");
}

static one_node make(const op_case *c)
{
    one_node made = {.arena = ir_arena_create(0)};
    mdot_error err = {0};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    print_case(out, c);
    fclose(out);
    if (ir_graph_parse(text, NULL, made.arena, &made.graph, &err) != MDOT_OK) fail_msg("%s in:\n%s", err.message, text);
    made.node = made.graph->first;
    free(text);
    return made;
}

static void print_type(FILE *out, const ir_type *type)
{
    char text[IR_DIM_TEXT_BYTES];
    fprintf(out, "%s[", mdot_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        fprintf(out, "%s%s", i ? "," : "", ir_dim_text(type->dim[i], NULL, text, sizeof text));
    }
    fputc(']', out);
}

static void print_known(FILE *out, const ir_known *known)
{
    char text[IR_DIM_TEXT_BYTES];
    fprintf(out, " known [");
    for (int i = 0; i < known->count; i++) {
        fprintf(out, "%s%s", i ? ", " : "", ir_dim_text(known->element[i], NULL, text, sizeof text));
    }
    fputc(']', out);
}

static ir_type type_of(const ir_wide *wide)
{
    ir_type type = {.dtype = wide->dtype, .rank = wide->rank};
    for (int i = 0; i < wide->rank; i++) type.dim[i] = ir_dim_number(wide->dims[i]);
    return type;
}

static void print_wide(FILE *out, const ir_wide *wide)
{
    ir_type type = type_of(wide);
    print_type(out, &type);
    fprintf(out, " [");
    for (int64_t i = 0; i < wide->count; i++) {
        if (i) fprintf(out, ", ");
        if (wide->f && isnan(wide->f[i])) {
            fprintf(out, "nan"); /* the sign is omitted */
        } else if (wide->f) {
            fprintf(out, "%.6g", wide->f[i] == 0 ? 0.0 : wide->f[i]); /* the sign of zero is omitted */
        } else if (wide->dtype == MDOT_DTYPE_U64) {
            fprintf(out, "%llu", (unsigned long long)wide->i[i]);
        } else {
            fprintf(out, "%lld", (long long)wide->i[i]);
        }
    }
    fputc(']', out);
}

static void expect_ok(mdot_status status, const mdot_error *err, const char *file, int line)
{
    if (status == MDOT_OK) return;
    print_error("%s: %s\n", mdot_status_name(status), err->message);
    _assert_int_equal(status, MDOT_OK, file, line);
}

static void expect_fault(mdot_status status, const mdot_error *err, mdot_status wanted, const char *text,
                         const char *file, int line)
{
    bool named = strstr(err->message, "node \"node\"") != NULL, has_text = strstr(err->message, text) != NULL;
    if (status != wanted || !named || !has_text) print_error("%s: \"%s\"\n", mdot_status_name(status), err->message);
    _assert_int_equal(status, wanted, file, line);
    _assert_true(named, "the message names the node", file, line);
    _assert_true(has_text, text, file, line);
}

void op_assert_types(op_case c, const char *expected, const char *file, int line)
{
    one_node made = make(&c);
    mdot_error err = {0};
    char *text = NULL;
    size_t length;
    expect_ok(ir_infer(made.graph, &err), &err, file, line);
    FILE *out = open_memstream(&text, &length);
    for (int i = 0; i < made.graph->output_count; i++) {
        if (i) fprintf(out, "; ");
        print_type(out, &made.graph->outputs[i]->type);
        if (made.graph->outputs[i]->known) print_known(out, made.graph->outputs[i]->known);
    }
    fclose(out);
    _assert_string_equal(text, expected, file, line);
    free(text);
    ir_arena_destroy(made.arena);
}

void op_assert_shape_fault(op_case c, mdot_status status, const char *text, const char *file, int line)
{
    one_node made = make(&c);
    mdot_error err = {0};
    expect_fault(ir_infer(made.graph, &err), &err, status, text, file, line);
    ir_arena_destroy(made.arena);
}

/* Runs only the evaluator, on the inputs' constants. */
static mdot_status evaluate(const one_node *made, ir_wide **out, mdot_error *err)
{
    const ir_wide *in[10] = {NULL};
    for (int i = 0; i < made->node->input_count; i++) {
        const ir_value *value = made->node->inputs[i];
        if (value) in[i] = ir_wide_from_tensor(made->arena, value->constant);
    }
    return ir_eval_node(made->arena, made->node, in, out, err);
}

void op_assert_values(op_case c, const char *expected, const char *file, int line)
{
    one_node made = make(&c);
    mdot_error err = {0};
    ir_wide *results[10] = {NULL};
    char *text = NULL;
    size_t length;
    expect_ok(ir_infer(made.graph, &err), &err, file, line);
    expect_ok(evaluate(&made, results, &err), &err, file, line);
    FILE *out = open_memstream(&text, &length);
    for (int i = 0, printed = 0; i < made.node->output_count; i++) {
        if (!made.node->outputs[i]) continue;
        ir_type type = type_of(results[i]);
        _assert_true(ir_type_equal(&type, &made.node->outputs[i]->type), "inferred and evaluated types agree", file,
                     line);
        if (printed++) fprintf(out, "; ");
        print_wide(out, results[i]);
    }
    fclose(out);
    _assert_string_equal(text, expected, file, line);
    free(text);
    ir_arena_destroy(made.arena);
}

void op_assert_eval_fault(op_case c, mdot_status status, const char *text, const char *file, int line)
{
    one_node made = make(&c);
    mdot_error err = {0};
    ir_wide *results[10] = {NULL};
    expect_fault(evaluate(&made, results, &err), &err, status, text, file, line);
    ir_arena_destroy(made.arena);
}

void op_assert_cost(op_case c, double flops, double bytes_read, double bytes_written, double parameters,
                    const char *file, int line)
{
    one_node made = make(&c);
    mdot_error err = {0};
    expect_ok(ir_infer(made.graph, &err), &err, file, line);
    ir_cost cost = ir_node_cost(made.node, 10);
    bool equal = cost.flops == flops && cost.bytes_read == bytes_read && cost.bytes_written == bytes_written &&
                 cost.parameters == parameters;
    if (!equal) {
        print_error("flops %g, bytes read %g, written %g, parameters %g\n", cost.flops, cost.bytes_read,
                    cost.bytes_written, cost.parameters);
    }
    _assert_true(equal, "the cost is as expected", file, line);
    ir_arena_destroy(made.arena);
}
