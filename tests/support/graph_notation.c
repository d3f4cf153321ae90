/* graph_notation.c — translates the notation in graph_notation.h into the text form for ir_graph_parse. */
#include "tests/support/graph_notation.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_parser.h"

#include "ir/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_NAMES = 1024, MAX_NAME_BYTES = 64 };

typedef struct notation {
    char names[MAX_NAMES][MAX_NAME_BYTES];
    int name_count;
    FILE *out;
} notation;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* Copies the name at *at, and moves *at past the name and the following spaces. */
static void read_name(const char **at, char *out)
{
    int length = 0;
    while (is_name_char(**at) && length < MAX_NAME_BYTES - 1) out[length++] = *(*at)++;
    out[length] = 0;
    assert_compare(length, >, 0);
    while (**at == ' ') (*at)++;
}

static int id_of(const notation *n, const char *name)
{
    for (int i = 0; i < n->name_count; i++) {
        if (strcmp(n->names[i], name) == 0) return i;
    }
    fail_msg("nothing before is called %s", name);
    return -1;
}

/* Writes the text up to `end` and replaces names by ids. A leading name that is an operator stays. */
static void write_uses(notation *n, const char *at, char end)
{
    char name[MAX_NAME_BYTES];
    while (*at && *at != end) {
        if (!is_name_char(*at)) {
            fputc(*at++, n->out);
            continue;
        }
        read_name(&at, name);
        if (strcmp(name, "_") == 0) {
            fputs("_", n->out);
        } else {
            fprintf(n->out, "%%%d", id_of(n, name));
        }
    }
}

/* "f32[4,6]" → 24 numbers, which repeat after 101. */
static void write_weights(notation *n, const char *type)
{
    int64_t count = 1;
    for (const char *at = strchr(type, '[') + 1; *at && *at != ']'; at++) {
        char *end;
        count *= strtoll(at, &end, 10);
        at = *end == ',' ? end : end - 1;
    }
    fprintf(n->out, "%s = constant [", type);
    for (int64_t i = 0; i < count; i++) fprintf(n->out, "%s%g", i ? ", " : "", (double)((i * 37 + 11) % 101 - 50) / 64);
    fputs("]\n", n->out);
}

static void write_line(notation *n, const char *line)
{
    char results[8][MAX_NAME_BYTES];
    int count = 0;
    do {
        while (*line == ' ' || *line == ',') line++;
        read_name(&line, results[count++]);
    } while (*line == ',');
    assert_compare(*line, ==, '=');
    line += strspn(line, "= ");
    for (int i = 0; i < count; i++) {
        fprintf(n->out, "%s%%%d \"%s\" : ", i ? ", " : "", n->name_count + i, results[i]);
        if (strncmp(line, "input ", 6) == 0) {
            fprintf(n->out, "%s = input\n", line + 6);
        } else if (strncmp(line, "constant ", 9) == 0) {
            int type = (int)strcspn(line + 9, "]") + 1;
            fprintf(n->out, "%.*s = constant%s\n", type, line + 9, line + 9 + type);
        } else if (strncmp(line, "weights ", 8) == 0) {
            write_weights(n, line + 8);
        } else {
            fputs("?[*]", n->out);
        }
    }
    const char *open = strchr(line, '(');
    if (open) {
        fprintf(n->out, " = %.*s", (int)(open - line), line);
        write_uses(n, open, ')');
        fprintf(n->out, "%s\n", strchr(open, ')'));
    }
    for (int i = 0; i < count; i++) {
        assert_compare(n->name_count, <, MAX_NAMES);
        if (n->name_count < MAX_NAMES) memcpy(n->names[n->name_count++], results[i], MAX_NAME_BYTES);
    }
}

ir_graph *graph_from_notation(const char *text, int64_t max_length, ir_arena *arena)
{
    char *body = NULL, *copy = strdup(text), *rest = copy;
    size_t size;
    notation n = {.out = open_memstream(&body, &size)};
    assert_non_null(n.out);
    fprintf(n.out, "graph \"test\" {\nlength \"L\" <= %lld\n", (long long)max_length);
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " ");
        if (!*line || *line == '#') continue;
        if (strncmp(line, "return ", 7) == 0) {
            fputs("return ", n.out);
            write_uses(&n, line + 7, 0);
        } else {
            write_line(&n, line);
        }
    }
    fputs("\n}\n", n.out);
    fclose(n.out);
    mdot_error err = {0};
    ir_graph *graph = NULL;
    if (ir_graph_parse(body, NULL, arena, &graph, &err) != MDOT_OK) fail_msg("%s\n%s", err.message, body);
    free(body);
    free(copy);
    return graph;
}

static const char *skip_quoted(const char *at)
{
    for (at++; *at && *at != '"'; at++) at += *at == '\\';
    return *at ? at + 1 : at;
}

char *graph_to_golden(const ir_graph *graph, ir_arena *arena)
{
    const char *at = ir_graph_print(graph, arena);
    int *number = IR_NEW_ARRAY(arena, int, graph->value_count + 1), next = 0;
    assert_non_null(at);
    char *to = ir_arena_alloc(arena, strlen(at) + 1, 1), *start = to;
    while (*at) {
        char *end;
        if (*at == '%') {
            long id = strtol(at + 1, &end, 10);
            if (!number[id]) number[id] = ++next;
            to += sprintf(to, "%%%d", number[id] - 1);
            at = end[0] == ' ' && end[1] == '"' ? skip_quoted(end + 1) : end; /* the value's name */
        } else if (*at == '@' && at[1] == '"') {
            at = skip_quoted(at + 1); /* the node's name, and the space before it */
            to--;
        } else {
            *to++ = *at++;
        }
    }
    *to = 0;
    /* The frame is redundant: the graph's name, the length, the braces. */
    const char *first = strchr(strchr(start, '\n') + 1, '\n') + 1;
    char *last = strrchr(start, '}');
    *last = 0;
    return ir_arena_strdup(arena, first);
}

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003), as a number in [0, 1). */
static double next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

ir_wide **random_inputs(const ir_graph *graph, int64_t length, uint64_t seed, ir_arena *arena)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    ir_wide **inputs = IR_NEW_ARRAY(arena, ir_wide *, graph->input_count + 1);
    for (int k = 0; k < graph->input_count; k++) {
        const ir_type *type = &graph->inputs[k]->type;
        int64_t dims[MDOT_MAX_RANK], row = 1;
        for (int i = 0; i < type->rank; i++) row = dims[i] = ir_dim_at(type->dim[i], length);
        ir_wide *wide = inputs[k] = ir_wide_create(arena, type->dtype, type->rank, dims);
        assert_non_null(wide);
        for (int64_t i = 0; i < wide->count; i++) {
            double r = next_random(&state);
            if (wide->f) {
                wide->f[i] = 2 * r - 1;
            } else {
                wide->i[i] = type->dtype != MDOT_DTYPE_BOOL ? (int64_t)(4 * r) : i % row == 0 || r < 0.7;
            }
        }
    }
    return inputs;
}

static void assert_same_tensor(const ir_value *output, const ir_wide *a, const ir_wide *b, double tolerance)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (int i = 0; i < a->rank; i++) assert_int_equal(a->dims[i], b->dims[i]);
    for (int64_t i = 0; i < a->count; i++) {
        double x = ir_wide_get(a, i), y = ir_wide_get(b, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (isinf(x) || !(fabs(x - y) <= tolerance * fmax(1, fabs(x)))) {
            fail_msg("output %s, element %lld of %lld: %.12g became %.12g", output->name, (long long)i,
                     (long long)a->count, x, y);
        }
    }
}

void assert_same_results(const ir_graph *a, const ir_graph *b, const ir_wide *const *inputs, double tolerance)
{
    mdot_error err = {0};
    ir_arena *arena = ir_arena_create(0);
    ir_wide **before = IR_NEW_ARRAY(arena, ir_wide *, a->output_count);
    ir_wide **after = IR_NEW_ARRAY(arena, ir_wide *, a->output_count);
    assert_int_equal(a->output_count, b->output_count);
    if (ir_evaluate(a, inputs, arena, before, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (ir_evaluate(b, inputs, arena, after, &err) != MDOT_OK) fail_msg("after the passes: %s", err.message);
    for (int i = 0; i < a->output_count; i++) {
        assert_string_equal(a->outputs[i]->name, b->outputs[i]->name);
        assert_same_tensor(a->outputs[i], before[i], after[i], tolerance);
    }
    ir_arena_destroy(arena);
}

void assert_same_values(const ir_graph *a, const ir_graph *b, int64_t length, double tolerance)
{
    ir_arena *arena = ir_arena_create(0);
    ir_wide **inputs = random_inputs(a, length, (uint64_t)length, arena);
    assert_same_results(a, b, (const ir_wide *const *)inputs, tolerance);
    ir_arena_destroy(arena);
}
