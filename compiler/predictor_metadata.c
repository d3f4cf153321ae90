/* predictor_metadata.c — column metadata of the inputs of a job predictor, read from its model:
 *
 *     mdot.defaults.gpu = "1, 0.5"                          defaults of an input's last columns, in any number, for a
 *                                                           runtime that lacks them
 *     mdot.reads.configuration = "batch, is_amp, torch"     the numbers of a configuration in its columns, all of them,
 *                                                           by MDOT_CONFIGURATION_MAP's names
 *     mdot.assumes.torch = "2.9"                            the version of PyTorch that answers stand for if a
 *                                                           configuration leaves it open
 */
#include "base/suggest.h"
#include "base/text.h"
#include "compiler/compiler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char defaults_prefix[] = IR_NOTE_PREFIX "defaults.", reads_key[] = IR_NOTE_PREFIX "reads.configuration",
                  torch_key[] = IR_NOTE_PREFIX "assumes.torch";

static const char *const number_names[] = {
#define NAME(id, name) name,
    MDOT_CONFIGURATION_MAP(NAME)
#undef NAME
};
enum { NUMBER_COUNT = sizeof number_names / sizeof *number_names };

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

/* Returns the first dimension that is a constant, because rows come before columns, and jointly evaluated
 * configurations come behind. 0 if there is none. */
static int64_t column_count(const ir_type *type)
{
    if (type->dtype != MDOT_DTYPE_F32) return 0;
    for (int d = 0; d < type->rank; d++)
        if (ir_dim_is_number(type->dim[d])) return type->dim[d].offset;
    return 0;
}

static int count_items(const char *list)
{
    int count = 1;
    for (; *list; list++) count += *list == ',';
    return count;
}

/* Reads numbers separated by commas; false if an item is not an f32 number. */
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

static mdot_status read_defaults(const ir_graph *graph, const ir_note *note, ir_arena *arena, cg_columns *columns,
                                 mdot_error *err)
{
    int input = find_input(graph, note->key + strlen(defaults_prefix));
    if (input < 0) return malformed(graph, note, "the model lacks this input", err);
    if (columns[input].default_count > 0) return malformed(graph, note, "the entry occurs twice", err);
    int64_t maximum = column_count(&graph->inputs[input]->type);
    if (maximum == 0) return malformed(graph, note, "the input must be f32 with a fixed number of columns", err);
    int count = count_items(note->value);
    if (count > maximum) return malformed(graph, note, "the list has more numbers than the input has columns", err);
    float *values = IR_NEW_ARRAY(arena, float, count);
    if (values == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    if (!read_numbers(note->value, count, values))
        return malformed(graph, note, "expected a comma-separated list of numbers", err);
    columns[input].default_count = count;
    columns[input].defaults = values;
    return MDOT_OK;
}

/* Writes the list without blanks to `out`, which is large enough; false if an item is not a name. */
static bool write_names(const char *list, char *out)
{
    for (;;) {
        list += strspn(list, " ");
        size_t length = strspn(list, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length == 0) return false;
        memcpy(out, list, length);
        out += length;
        list += length;
        list += strspn(list, " ");
        *out++ = *list;
        if (*list == '\0') return true;
        if (*list++ != ',') return false;
    }
}

static mdot_status read_names(const ir_graph *graph, const ir_note *note, ir_arena *arena, cg_columns *columns,
                              mdot_error *err)
{
    int input = find_input(graph, "configuration");
    if (input < 0) return malformed(graph, note, "the model lacks this input", err);
    if (columns[input].names != NULL) return malformed(graph, note, "the entry occurs twice", err);
    char *names = IR_NEW_ARRAY(arena, char, strlen(note->value) + 1);
    if (names == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    if (!write_names(note->value, names))
        return malformed(graph, note, "expected a comma-separated list of names", err);
    if (count_items(names) != column_count(&graph->inputs[input]->type))
        return malformed(graph, note, "the number of names differs from the number of f32 columns of the input", err);
    columns[input].names = names;
    return MDOT_OK;
}

static bool is_listed_before(const char *names, const char *name, size_t length)
{
    for (const char *cursor = names; cursor < name; cursor += strcspn(cursor, ",") + 1)
        if (strcspn(cursor, ",") == length && strncmp(cursor, name, length) == 0) return true;
    return false;
}

/* A name that this mdot does not know belongs to a later version, and needs a default. */
static mdot_status check_names(const ir_graph *graph, const cg_columns *columns, mdot_error *err)
{
    if (columns->names == NULL) return MDOT_OK;
    int left = count_items(columns->names);
    for (const char *name = columns->names; left > 0; left--) {
        size_t length = strcspn(name, ",");
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)length, name);
        if (is_listed_before(columns->names, name, length))
            return mdot_fail(err, MDOT_MALFORMED, "%s: metadata %s has %s twice", graph->name, reads_key, text);
        bs_suggest suggestion = bs_suggest_begin(text);
        bool is_known = left <= columns->default_count;
        for (int i = 0; i < NUMBER_COUNT; i++) {
            bs_suggest_add(&suggestion, number_names[i]);
            is_known = is_known || (strlen(number_names[i]) == length && strncmp(number_names[i], name, length) == 0);
        }
        if (!is_known)
            return mdot_fail(err, MDOT_MALFORMED, "%s: metadata %s: mdot %s lacks the configuration number %s%s",
                             graph->name, reads_key, MDOT_VERSION_STRING, text, bs_suggest_end(&suggestion).text);
        name += length + 1;
    }
    return MDOT_OK;
}

/* Reads one or two digits and advances `cursor`; -1 if there are none. */
static int read_two_digits(const char **cursor)
{
    size_t length = strspn(*cursor, "0123456789");
    if (length < 1 || length > 2) return -1;
    int value = **cursor - '0';
    if (length == 2) value = 10 * value + (*cursor)[1] - '0';
    *cursor += length;
    return value;
}

static mdot_status read_torch(const ir_graph *graph, const ir_note *note, cg_columns *columns, mdot_error *err)
{
    int input = find_input(graph, "configuration");
    if (input < 0) return malformed(graph, note, "the model lacks the input configuration", err);
    if (columns[input].assumed_torch > 0) return malformed(graph, note, "the entry occurs twice", err);
    const char *cursor = note->value;
    int major = read_two_digits(&cursor), minor = *cursor == '.' ? (cursor++, read_two_digits(&cursor)) : -1;
    if (major < 1 || minor < 0 || *cursor != '\0')
        return malformed(graph, note, "expected a version from 1.0 to 99.99, for example 2.9", err);
    columns[input].assumed_torch = (uint32_t)(100 * major + minor);
    return MDOT_OK;
}

static void warn_of_note(const ir_graph *graph, const ir_note *note, const co_hooks *hooks)
{
    char text[512];
    snprintf(text, sizeof text, "%s: metadata %s is unknown to mdot %s", graph->name, note->key, MDOT_VERSION_STRING);
    bs_make_printable(text);
    if (hooks->warning != NULL) hooks->warning(hooks->user, text);
}

mdot_status co_read_columns(const ir_graph *graph, const co_hooks *hooks, ir_arena *arena,
                            const cg_columns **out_columns, mdot_error *err)
{
    if (graph->note_count == 0) return MDOT_OK;
    cg_columns *columns = IR_NEW_ARRAY(arena, cg_columns, graph->input_count + 1);
    if (columns == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    mdot_status status = MDOT_OK;
    for (int i = 0; status == MDOT_OK && i < graph->note_count; i++) {
        const ir_note *note = &graph->notes[i];
        if (strncmp(note->key, defaults_prefix, strlen(defaults_prefix)) == 0)
            status = read_defaults(graph, note, arena, columns, err);
        else if (strcmp(note->key, reads_key) == 0)
            status = read_names(graph, note, arena, columns, err);
        else if (strcmp(note->key, torch_key) == 0)
            status = read_torch(graph, note, columns, err);
        else
            warn_of_note(graph, note, hooks);
    }
    int configuration = find_input(graph, "configuration");
    if (status == MDOT_OK && configuration >= 0) status = check_names(graph, &columns[configuration], err);
    if (status == MDOT_OK) *out_columns = columns;
    return status;
}
