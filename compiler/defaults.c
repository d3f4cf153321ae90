/* defaults.c — what a predictor of jobs is given where a runtime has not all the columns that it reads. Its model says
 * so in its metadata, for as many of an input's last columns as it likes:
 *
 *     mdot.defaults.gpu = "1, 0.5"
 */
#include "base/number.h"
#include "base/printable.h"
#include "compiler/compiler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char prefix[] = IR_NOTE_PREFIX "defaults.";

static mdot_status malformed(const ir_graph *graph, const ir_note *note, const char *reason, mdot_error *err)
{
    return mdot_fail(err, MDOT_MALFORMED, "%s: metadata %s = \"%s\": %s", graph->name, note->key, note->value, reason);
}

static int find_input(const ir_graph *graph, const char *name)
{
    int i = graph->input_count - 1;
    while (i >= 0 && strcmp(graph->inputs[i]->name, name) != 0) i--;
    return i;
}

/* 0: the last dimension is no number of columns. */
static int64_t column_count(const ir_type *type)
{
    if (type->dtype != MDOT_DTYPE_F32 || type->rank < 1) return 0;
    ir_dim last = type->dim[type->rank - 1];
    return ir_dim_is_number(last) ? last.offset : 0;
}

static int count_numbers(const char *list)
{
    int count = 1;
    for (; *list; list++) count += *list == ',';
    return count;
}

/* Separated by commas; false: something is no number of f32. */
static bool read_numbers(const char *list, int count, float *out_values)
{
    for (int i = 0; i < count; i++) {
        const char *end;
        out_values[i] = bs_number_read_f32(list, &end);
        if (end == list || !isfinite(out_values[i])) return false;
        list = end + strspn(end, " ");
        if (*list != (i + 1 < count ? ',' : '\0')) return false;
        list++;
    }
    return true;
}

static mdot_status read_note(const ir_graph *graph, const ir_note *note, ir_arena *arena, cg_defaults *defaults,
                             mdot_error *err)
{
    int input = find_input(graph, note->key + strlen(prefix));
    if (input < 0) return malformed(graph, note, "the model has no such input", err);
    if (defaults[input].count > 0) return malformed(graph, note, "that is said twice", err);
    int64_t columns = column_count(&graph->inputs[input]->type);
    if (columns == 0) return malformed(graph, note, "the input has no f32 columns, as many at any length", err);
    int count = count_numbers(note->value);
    if (count > columns) return malformed(graph, note, "those are more numbers than the input has columns", err);
    float *values = IR_NEW_ARRAY(arena, float, count);
    if (values == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: memory ran out", graph->name);
    if (!read_numbers(note->value, count, values))
        return malformed(graph, note, "that is no list of numbers, separated by commas", err);
    defaults[input] = (cg_defaults){count, values};
    return MDOT_OK;
}

static void warn_of_note(const ir_graph *graph, const ir_note *note, const co_hooks *hooks)
{
    char text[512];
    snprintf(text, sizeof text, "%s: metadata %s means nothing to mdot %s", graph->name, note->key,
             MDOT_VERSION_STRING);
    bs_make_printable(text);
    if (hooks->warning != NULL) hooks->warning(hooks->user, text);
}

mdot_status co_read_defaults(const ir_graph *graph, const co_hooks *hooks, ir_arena *arena,
                             const cg_defaults **out_defaults, mdot_error *err)
{
    if (graph->note_count == 0) return MDOT_OK;
    cg_defaults *defaults = IR_NEW_ARRAY(arena, cg_defaults, graph->input_count + 1);
    if (defaults == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: memory ran out", graph->name);
    for (int i = 0; i < graph->note_count; i++) {
        const ir_note *note = &graph->notes[i];
        if (strncmp(note->key, prefix, strlen(prefix)) != 0) {
            warn_of_note(graph, note, hooks);
            continue;
        }
        mdot_status status = read_note(graph, note, arena, defaults, err);
        if (status != MDOT_OK) return status;
    }
    *out_defaults = defaults;
    return MDOT_OK;
}
