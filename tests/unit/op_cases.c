/* op_cases.c — runs the tables of op_cases.h. */
#include "op_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a graph grows here; the cases are small. */
typedef struct text {
    char buffer[1 << 16];
    size_t length;
} text;

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(t->buffer + t->length, sizeof t->buffer - t->length, format, args);
    va_end(args);
    assert_true(written >= 0 && (size_t)written < sizeof t->buffer - t->length);
    t->length += (size_t)written;
}

static ir_graph *parse(const char *source, ir_arena *arena)
{
    ir_graph *graph = NULL;
    mdot_error err;
    if (ir_graph_parse(source, NULL, arena, &graph, &err) != MDOT_OK) fail_msg("%s\nin:\n%s", err.message, source);
    return graph;
}

/* `TYPE`, `TYPE known […]` or `TYPE CONTENT`: where the content begins, or NULL. */
static const char *content_of(const char *operand)
{
    const char *end = strchr(operand, ']');
    assert_non_null(end);
    end += 1 + strspn(end + 1, " ");
    return *end == '[' ? end : NULL;
}

static void add_operand(text *t, int id, const char *operand)
{
    const char *content = content_of(operand);
    int type_length = content ? (int)(content - operand) : (int)strlen(operand);
    add(t, "%%%d \"in%d\" : %.*s = %s %s\n", id, id, type_length, operand, content ? "constant" : "input",
        content ? content : "");
}

static int result_count(const op_case *c)
{
    int count = 1;
    while (count < CASE_RESULTS && c->wants[count]) count++;
    return count;
}

ir_graph *case_graph(const op_case *c, ir_arena *arena)
{
    static text t;
    t.length = 0;
    add(&t, "graph \"case\" {\nlength \"L\" <= %d\n", CASE_MAX_LENGTH);
    int inputs = 0;
    for (; inputs < CASE_OPERANDS && c->inputs[inputs]; inputs++) {
        if (strcmp(c->inputs[inputs], "_") != 0) add_operand(&t, inputs, c->inputs[inputs]);
    }
    int results = result_count(c);
    for (int k = 0; k < results; k++) add(&t, "%s%%%d \"out%d\" : ?[*]", k ? ", " : "", CASE_OPERANDS + k, k);
    add(&t, " = %s(", c->op);
    for (int k = 0; k < inputs; k++) {
        bool absent = strcmp(c->inputs[k], "_") == 0;
        if (absent)
            add(&t, "%s_", k ? ", " : "");
        else
            add(&t, "%s%%%d", k ? ", " : "", k);
    }
    add(&t, ") @\"%s\"", c->name);
    if (c->attrs[0]) add(&t, " {%s}", c->attrs);
    add(&t, "\nreturn ");
    for (int k = 0; k < results; k++) add(&t, "%s%%%d", k ? ", " : "", CASE_OPERANDS + k);
    add(&t, "\n}\n");
    return parse(t.buffer, arena);
}

/* The declaration of a type, and content as a constant where there is some. */
static const ir_value *wanted(const char *want, ir_arena *arena, bool constant)
{
    static text t;
    t.length = 0;
    const char *content = constant ? content_of(want) : NULL;
    int length = content ? (int)(content - want) : (int)strlen(want);
    add(&t, "graph \"want\" { length \"L\" <= %d %%0 \"want\" : %.*s = %s %s return %%0 }", CASE_MAX_LENGTH, length,
        want, content ? "constant" : "input", content ? content : "");
    return parse(t.buffer, arena)->outputs[0];
}

static void require(const op_case *c, mdot_status status, const mdot_error *err)
{
    if (status != MDOT_OK) fail_msg("%s: %s", c->name, err->message);
}

static void compare(const op_case *c, int output, const ir_wide *got, const ir_wide *want, double tolerance)
{
    if (got->dtype != want->dtype || got->rank != want->rank) {
        fail_msg("%s: output %d is %s of rank %d", c->name, output, mdot_dtype_name(got->dtype), got->rank);
    }
    for (int i = 0; i < got->rank; i++) {
        if (got->dims[i] != want->dims[i]) fail_msg("%s: dimension %d is %lld", c->name, i, (long long)got->dims[i]);
    }
    for (int64_t i = 0; i < want->count; i++) {
        if (want->i && got->i[i] != want->i[i]) {
            fail_msg("%s: element %lld is %lld, not %lld", c->name, (long long)i, (long long)got->i[i],
                     (long long)want->i[i]);
        }
        if (want->i) continue;
        double g = got->f[i], w = want->f[i];
        bool same = g == w || (isnan(g) && isnan(w)) || fabs(g - w) <= tolerance * fmax(1, fabs(w));
        if (!same) fail_msg("%s: element %lld is %.17g, not %.17g", c->name, (long long)i, g, w);
    }
}

void expect_values(const op_case *cases, size_t count, double tolerance)
{
    for (const op_case *c = cases; c < cases + count; c++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = case_graph(c, arena);
        ir_wide *out[CASE_RESULTS];
        mdot_error err;
        require(c, ir_infer(graph, &err), &err);
        require(c, ir_graph_verify(graph, &err), &err);
        require(c, ir_evaluate(graph, NULL, arena, out, &err), &err);
        for (int k = 0; k < graph->output_count; k++) {
            const ir_value *want = wanted(c->wants[k], arena, true);
            compare(c, k, out[k], ir_wide_from_tensor(arena, want->constant), tolerance);
            if (!ir_type_equal(&graph->outputs[k]->type, &want->type))
                fail_msg("%s: the inferred type is wrong", c->name);
        }
        ir_arena_destroy(arena);
    }
}

static const char *shown(const ir_graph *graph, ir_arena *arena)
{
    return ir_graph_print(graph, arena);
}

void expect_types(const op_case *cases, size_t count)
{
    for (const op_case *c = cases; c < cases + count; c++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = case_graph(c, arena);
        mdot_error err;
        require(c, ir_infer(graph, &err), &err);
        require(c, ir_graph_verify(graph, &err), &err);
        for (int k = 0; k < graph->output_count; k++) {
            const ir_value *got = graph->outputs[k];
            const char *unknown = strstr(c->wants[k], " unknown");
            const char *type =
                unknown ? ir_arena_strndup(arena, c->wants[k], (size_t)(unknown - c->wants[k])) : c->wants[k];
            const ir_value *want = wanted(type, arena, false);
            bool same = ir_type_equal(&got->type, &want->type) && !(unknown && got->known);
            if (want->known) same = same && got->known && got->known->count == want->known->count;
            for (int i = 0; same && want->known && i < want->known->count; i++) {
                same = ir_dim_equal(got->known->element[i], want->known->element[i]);
            }
            if (!same) fail_msg("%s: output %d is not %s:\n%s", c->name, k, c->wants[k], shown(graph, arena));
        }
        ir_arena_destroy(arena);
    }
}

static void expect_fault(const op_case *c, mdot_status got, mdot_status want, const mdot_error *err)
{
    if (got != want) fail_msg("%s: %s instead of %s", c->name, mdot_status_name(got), mdot_status_name(want));
    if (!strstr(err->message, c->wants[0]))
        fail_msg("%s: \"%s\" does not say \"%s\"", c->name, err->message, c->wants[0]);
    if (!strstr(err->message, c->name)) fail_msg("%s: \"%s\" does not name the node", c->name, err->message);
}

void expect_type_faults(const op_case *cases, size_t count, mdot_status status)
{
    for (const op_case *c = cases; c < cases + count; c++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err = {.status = MDOT_OK};
        expect_fault(c, ir_infer(case_graph(c, arena), &err), status, &err);
        ir_arena_destroy(arena);
    }
}

void expect_value_faults(const op_case *cases, size_t count, mdot_status status)
{
    for (const op_case *c = cases; c < cases + count; c++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err = {.status = MDOT_OK};
        ir_wide *out[CASE_RESULTS];
        expect_fault(c, ir_evaluate(case_graph(c, arena), NULL, arena, out, &err), status, &err);
        ir_arena_destroy(arena);
    }
}

ir_cost case_cost(const op_case *c, int64_t length)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = case_graph(c, arena);
    mdot_error err;
    ir_cost cost;
    require(c, ir_infer(graph, &err), &err);
    graph->first->op->cost(graph->first, length, &cost);
    ir_arena_destroy(arena);
    return cost;
}
