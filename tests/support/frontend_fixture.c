/* frontend_fixture.c — see frontend_fixture.h. */
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct warnings {
    int count;
    char last[512];
} warnings;

static void keep_warning(void *user, const char *message)
{
    warnings *w = user;
    w->count++;
    snprintf(w->last, sizeof w->last, "%s", message);
}

imported import_bytes(pb_buffer bytes, const char *folder, const fe_options *options)
{
    imported result = {.bytes = bytes, .arena = ir_arena_create(0)};
    assert_non_null(result.arena);
    warnings w = {0};
    fe_options with_warnings = options ? *options : (fe_options){0};
    with_warnings.warning = keep_warning;
    with_warnings.user = &w;
    result.status = fe_import_bytes(bytes.data, bytes.size, "model.onnx", folder, &with_warnings, result.arena,
                                    &result.graph, &result.err);
    result.warning_count = w.count;
    memcpy(result.warning, w.last, sizeof w.last);
    return result;
}

imported import_model(onnx_builder *b, const fe_options *options)
{
    return import_bytes(onnx_finish(b), NULL, options);
}

void release(imported *model)
{
    ir_arena_destroy(model->arena);
    pb_free(&model->bytes);
}

imported expect_imported(onnx_builder *b, const fe_options *options)
{
    imported model = import_model(b, options);
    if (model.status != MDOT_OK) fail_msg("%s: %s", mdot_status_name(model.status), model.err.message);
    assert_non_null(model.graph);
    return model;
}

static void check_refusal(imported *model, mdot_status status, const char *part, va_list more)
{
    if (model->status != status) {
        fail_msg("expected %s, got %s: %s", mdot_status_name(status), mdot_status_name(model->status),
                 model->err.message);
    }
    assert_null(model->graph);
    assert_int_equal(model->err.status, status);
    for (; part; part = va_arg(more, const char *)) {
        if (!strstr(model->err.message, part)) fail_msg("\"%s\" lacks \"%s\"", model->err.message, part);
    }
    release(model);
}

void expect_refused(onnx_builder *b, const fe_options *options, mdot_status status, const char *part, ...)
{
    imported model = import_model(b, options);
    va_list more;
    va_start(more, part);
    check_refusal(&model, status, part, more);
    va_end(more);
}

static void check_refusal_of_bytes(pb_buffer bytes, mdot_status status, const char *part, ...)
{
    imported model = import_bytes(bytes, NULL, NULL);
    va_list more;
    va_start(more, part);
    check_refusal(&model, status, part, more);
    va_end(more);
}

void expect_refused_bytes(pb_buffer bytes, mdot_status status, const char *part)
{
    check_refusal_of_bytes(bytes, status, part, NULL);
}

int node_count(const ir_graph *graph)
{
    int count = 0;
    for (const ir_node *node = graph->first; node; node = node->next) count++;
    return count;
}

ir_node *node_at(const ir_graph *graph, int i)
{
    ir_node *node = graph->first;
    for (; node && i; i--) node = node->next;
    assert_non_null(node);
    return node;
}

ir_node *node_of(const ir_graph *graph, ir_opcode op)
{
    ir_node *found = NULL;
    for (ir_node *node = graph->first; node; node = node->next) {
        if (node->op != &ir_ops[op]) continue;
        assert_null(found);
        found = node;
    }
    if (!found) fail_msg("no node of %s", ir_ops[op].name);
    return found;
}

void expect_ints(const ir_value *value, int count, const int64_t *expected)
{
    int64_t got[IR_MAX_KNOWN];
    int got_count;
    assert_non_null(value);
    assert_true(ir_value_ints(value, got, &got_count));
    assert_int_equal(got_count, count);
    for (int i = 0; i < count; i++) assert_int_equal(got[i], expected[i]);
}
