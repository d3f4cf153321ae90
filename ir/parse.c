/* parse.c — reads a graph back from the form that text.h describes.
 *
 * The parser stops at the first fault and keeps it: functions go on after one harmlessly, and callers check where they
 * loop or allocate. Values are found by the id in the text, and keep it.
 */
#include "ir/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ID = 1 << 20 }; /* bounds the id table that a text can ask for */

typedef struct parser {
    const char *at;
    const char *end;
    int line;
    ir_arena *arena;
    ir_graph *graph;
    const ir_graph *constants_from;
    ir_value **values; /* by id */
    int value_capacity, value_end;
    mdot_status status;
    mdot_error *err;
} parser;

static bool ok(const parser *p)
{
    return p->status == MDOT_OK;
}

static bool fail(parser *p, const char *reason)
{
    if (ok(p)) p->status = mdot_fail(p->err, MDOT_MALFORMED, "graph text, line %d: %s", p->line, reason);
    return false;
}

static bool fail_memory(parser *p)
{
    if (ok(p)) p->status = mdot_fail(p->err, MDOT_OUT_OF_MEMORY, "graph text: memory ran out");
    return false;
}

static void *allocate(parser *p, size_t count, size_t size)
{
    void *memory = ok(p) ? ir_arena_alloc(p->arena, count, size) : NULL;
    if (!memory) fail_memory(p);
    return memory;
}

/* ---- Words and numbers ----------------------------------------------------------------------------------------- */

static void skip_space(parser *p)
{
    for (; isspace((unsigned char)*p->at); p->at++) p->line += *p->at == '\n';
}

/* The next character that is no space; NUL at the end. */
static char peek(parser *p)
{
    skip_space(p);
    return *p->at;
}

/* Takes `token` where it comes next: a mark, or a whole word. */
static bool take(parser *p, const char *token)
{
    size_t length = strlen(token);
    if (!ok(p)) return false;
    skip_space(p);
    if (strncmp(p->at, token, length) != 0) return false;
    if (ir_text_is_word_char(token[0]) && ir_text_is_word_char(p->at[length])) return false;
    p->at += length;
    return true;
}

static bool expect(parser *p, const char *token)
{
    char reason[64];
    if (!ok(p)) return false;
    if (take(p, token)) return true;
    snprintf(reason, sizeof reason, "expected `%s`", token);
    return fail(p, reason);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "…" with \", \\ and \xhh. NULL after a fault. */
static const char *parse_quoted(parser *p)
{
    if (!expect(p, "\"")) return NULL;
    const char *end = p->at;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    char *text = allocate(p, (size_t)(end - p->at) + 1, 1), *to = text;
    if (!text) return NULL;
    while (p->at < end) {
        char c = *p->at++;
        p->line += c == '\n';
        if (c == '\\' && *p->at == 'x') {
            int high = hex_digit(p->at[1]), low = high < 0 ? -1 : hex_digit(p->at[2]);
            if (low <= 0 && high <= 0) return fail(p, "expected two hexadecimal digits, not zero, after \\x"), NULL;
            if (low < 0) return fail(p, "expected two hexadecimal digits after \\x"), NULL;
            c = (char)(high * 16 + low);
            p->at += 3;
        } else if (c == '\\') {
            c = *p->at++;
        }
        *to++ = c;
    }
    return expect(p, "\"") ? text : NULL;
}

static const char *parse_word(parser *p)
{
    if (!ok(p)) return NULL;
    skip_space(p);
    const char *begin = p->at;
    while (ir_text_is_word_char(*p->at)) p->at++;
    if (p->at == begin) return fail(p, "expected a name"), NULL;
    const char *word = ir_arena_strndup(p->arena, begin, (size_t)(p->at - begin));
    if (!word) fail_memory(p);
    return word;
}

static int64_t parse_int(parser *p)
{
    char *end;
    if (!ok(p)) return 0;
    skip_space(p);
    errno = 0;
    long long value = strtoll(p->at, &end, 10);
    if (end == p->at || errno) return fail(p, "expected an integer of 64 bits"), 0;
    p->at = end;
    return value;
}

static uint64_t parse_unsigned(parser *p, int base)
{
    char *end;
    if (!ok(p)) return 0;
    skip_space(p);
    errno = 0;
    unsigned long long value = strtoull(p->at, &end, base);
    if (end == p->at || errno) return fail(p, "expected a number of 64 bits"), 0;
    p->at = end;
    return value;
}

static double parse_float(parser *p)
{
    char *end;
    if (!ok(p)) return 0;
    skip_space(p);
    double value = strtod(p->at, &end);
    if (end == p->at) return fail(p, "expected a number"), 0;
    p->at = end;
    if (*p->at == 'f') {
        p->at++;
        value = (float)value;
    }
    return value;
}

/* Whether the number that comes next is a float: has a point or an exponent, or is nan or inf. */
static bool at_float(parser *p)
{
    const char *c = (skip_space(p), p->at);
    c += *c == '-';
    if (*c == 'n' || *c == 'i') return true;
    while (*c >= '0' && *c <= '9') c++;
    return *c == '.' || *c == 'e';
}

/* ---- Types ----------------------------------------------------------------------------------------------------- */

/* 3, L, 2L+1, -L+4 */
static ir_dim parse_dim(parser *p)
{
    ir_dim d = {0, 0};
    if (!ok(p)) return d;
    skip_space(p);
    if (*p->at == 'L' || (*p->at == '-' && p->at[1] == 'L')) {
        d.scale = *p->at == '-' ? -1 : 1;
        p->at += d.scale < 0;
    } else {
        d.offset = parse_int(p);
        if (*p->at != 'L') return d;
        d = (ir_dim){d.offset, 0};
    }
    p->at++;
    if (*p->at == '+' || *p->at == '-') d.offset = parse_int(p);
    return d;
}

static mdot_dtype parse_dtype(parser *p)
{
    if (take(p, "?")) return MDOT_DTYPE_NONE;
    const char *word = parse_word(p);
    for (int i = MDOT_DTYPE_F32; word && i <= MDOT_DTYPE_BF16; i++) {
        if (strcmp(mdot_dtype_name((mdot_dtype)i), word) == 0) return (mdot_dtype)i;
    }
    fail(p, "expected an element type");
    return MDOT_DTYPE_NONE;
}

static ir_type parse_type(parser *p)
{
    ir_type type = {.dtype = parse_dtype(p), .rank = -1};
    if (!expect(p, "[")) return type;
    if (!take(p, "*")) {
        type.rank = 0;
        while (ok(p) && peek(p) != ']') {
            if (type.rank == MDOT_MAX_RANK) {
                fail(p, "more dimensions than a tensor may have");
                break;
            }
            if (type.rank) expect(p, ",");
            type.dim[type.rank++] = parse_dim(p);
        }
    }
    expect(p, "]");
    return type;
}

static const ir_known *parse_known(parser *p)
{
    ir_dim elements[IR_MAX_KNOWN];
    int count = 0;
    expect(p, "[");
    while (ok(p) && peek(p) != ']') {
        if (count == IR_MAX_KNOWN) return fail(p, "more known elements than are kept"), NULL;
        if (count) expect(p, ",");
        elements[count++] = parse_dim(p);
    }
    expect(p, "]");
    ir_dim *copy = allocate(p, (size_t)count, sizeof *copy);
    ir_known *known = allocate(p, 1, sizeof *known);
    if (!copy || !known) return NULL;
    if (count) memcpy(copy, elements, (size_t)count * sizeof *copy);
    *known = (ir_known){count, copy};
    return known;
}

/* ---- Content --------------------------------------------------------------------------------------------------- */

/* The constant of `constants_from` with this hash; NULL: there is none. */
static const ir_tensor *find_content(const ir_graph *graph, uint64_t hash)
{
    for (const ir_node *node = graph ? graph->first : NULL; node; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_tensor *tensor = node->inputs[i] ? node->inputs[i]->constant : NULL;
            if (tensor && tensor->data && ir_tensor_hash(tensor) == hash) return tensor;
        }
        for (int i = 0; i < node->attr_count; i++) {
            const ir_tensor *tensor = node->attrs[i].kind == IR_ATTR_TENSOR ? node->attrs[i].tensor : NULL;
            if (tensor && tensor->data && ir_tensor_hash(tensor) == hash) return tensor;
        }
    }
    for (int i = 0; graph && i < graph->output_count; i++) {
        const ir_tensor *tensor = graph->outputs[i]->constant;
        if (tensor && tensor->data && ir_tensor_hash(tensor) == hash) return tensor;
    }
    return NULL;
}

static const void *parse_inline(parser *p, const ir_tensor *shape)
{
    /* Every element takes a character at least: a shape larger than the text is not allocated. */
    if (shape->count > p->end - p->at) return fail(p, "fewer elements than the type has"), NULL;
    if (mdot_dtype_size_bytes(shape->dtype) == 0) return fail(p, "no content can be given for this type"), NULL;
    ir_wide *wide = ok(p) ? ir_wide_create(p->arena, shape->dtype, shape->rank, shape->dims) : NULL;
    if (!wide) return fail_memory(p), NULL;
    expect(p, "[");
    for (int64_t i = 0; i < wide->count && ok(p); i++) {
        if (i) expect(p, ",");
        if (wide->f) {
            wide->f[i] = parse_float(p);
        } else if (wide->dtype == MDOT_DTYPE_U64) {
            wide->i[i] = (int64_t)parse_unsigned(p, 10);
        } else {
            wide->i[i] = ir_wrap_integer(wide->dtype, parse_int(p));
        }
    }
    if (!expect(p, "]")) return NULL;
    const ir_tensor *tensor = ir_tensor_from_wide(p->arena, wide);
    return tensor ? tensor->data : (fail_memory(p), NULL);
}

static const ir_tensor *parse_content(parser *p, const ir_type *type)
{
    ir_tensor *tensor = allocate(p, 1, sizeof *tensor);
    if (!tensor) return NULL;
    tensor->dtype = type->dtype;
    tensor->rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        if (!ir_dim_is_number(type->dim[i])) return fail(p, "a constant has a dimension that is no number"), NULL;
        tensor->dims[i] = type->dim[i].offset;
    }
    tensor->count = type->rank < 0 ? -1 : ir_count_elements(type->rank, tensor->dims);
    if (tensor->count < 0) return fail(p, "a constant needs a shape"), NULL;
    if (take(p, "unread")) return tensor;
    if (take(p, "#")) {
        const ir_tensor *content = find_content(p->constants_from, parse_unsigned(p, 16));
        if (content) tensor->data = content->data;
        return tensor;
    }
    tensor->data = parse_inline(p, tensor);
    return ok(p) ? tensor : NULL;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

typedef struct declaration {
    bool absent;
    int id;
    const char *name;
    ir_type type;
    const ir_known *known;
} declaration;

static int parse_id(parser *p)
{
    expect(p, "%");
    int64_t id = parse_int(p);
    if (ok(p) && (id < 0 || id >= MAX_ID)) fail(p, "a value's number is out of bounds");
    return ok(p) ? (int)id : 0;
}

static declaration parse_declaration(parser *p)
{
    declaration d = {.absent = take(p, "_")};
    if (d.absent) return d;
    d.id = parse_id(p);
    d.name = parse_quoted(p);
    expect(p, ":");
    d.type = parse_type(p);
    if (take(p, "known")) d.known = parse_known(p);
    return d;
}

/* Gives a value that a builder made the id, type and content of its declaration. */
static void define(parser *p, ir_value *value, const declaration *d)
{
    if (!value) fail_memory(p);
    if (!ok(p)) return;
    if (d->id < p->value_capacity && p->values[d->id]) {
        fail(p, "a value is defined twice");
        return;
    }
    if (d->id >= p->value_capacity) {
        int capacity = p->value_capacity ? p->value_capacity : 64;
        while (capacity <= d->id) capacity *= 2;
        ir_value **grown = allocate(p, (size_t)capacity, sizeof(ir_value *));
        if (!grown) return;
        if (p->value_capacity) memcpy(grown, p->values, (size_t)p->value_capacity * sizeof *grown);
        p->values = grown;
        p->value_capacity = capacity;
    }
    value->id = d->id;
    value->name = d->name;
    value->type = d->type;
    value->known = d->known;
    p->values[d->id] = value;
    if (d->id >= p->value_end) p->value_end = d->id + 1;
}

static ir_value *parse_use(parser *p)
{
    int id = parse_id(p);
    ir_value *value = ok(p) && id < p->value_capacity ? p->values[id] : NULL;
    if (!value) fail(p, "a value is used before it is defined");
    return value;
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static void parse_array(parser *p, ir_attr *attr)
{
    bool of_strings = peek(p) == '"';
    bool of_floats = !of_strings && at_float(p);
    attr->kind = of_strings ? IR_ATTR_STRINGS : of_floats ? IR_ATTR_FLOATS : IR_ATTR_INTS;
    int capacity = 0;
    int64_t *ints = NULL;
    double *floats = NULL;
    const char **strings = NULL;
    do {
        if (attr->count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            void *grown = allocate(p, (size_t)capacity, 8); /* all three have elements of 8 bytes */
            const void *old = of_strings  ? (const void *)strings
                              : of_floats ? (const void *)floats
                                          : (const void *)ints;
            if (!grown) return;
            if (attr->count) memcpy(grown, old, (size_t)attr->count * 8);
            ints = grown, floats = grown, strings = grown;
        }
        if (of_strings)
            strings[attr->count] = parse_quoted(p);
        else if (of_floats)
            floats[attr->count] = parse_float(p);
        else
            ints[attr->count] = parse_int(p);
        attr->count++;
    } while (take(p, ","));
    expect(p, "]");
    attr->ints = of_strings || of_floats ? NULL : ints;
    attr->floats = of_floats ? floats : NULL;
    attr->strings = of_strings ? strings : NULL;
}

static bool take_empty_array(parser *p, ir_attr *attr)
{
    static const struct {
        const char *word;
        ir_attr_kind kind;
    } kinds[] = {{"ints", IR_ATTR_INTS}, {"floats", IR_ATTR_FLOATS}, {"strings", IR_ATTR_STRINGS}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!take(p, kinds[i].word)) continue;
        attr->kind = kinds[i].kind;
        return expect(p, "[") && expect(p, "]");
    }
    return false;
}

static void parse_attr(parser *p, ir_attr *attr)
{
    attr->name = peek(p) == '"' ? parse_quoted(p) : parse_word(p);
    expect(p, "=");
    if (take_empty_array(p, attr)) return;
    if (take(p, "[")) {
        parse_array(p, attr);
    } else if (take(p, "graph")) {
        attr->kind = IR_ATTR_GRAPH;
    } else if (take(p, "tensor")) {
        attr->kind = IR_ATTR_TENSOR;
        ir_type type = parse_type(p);
        attr->tensor = parse_content(p, &type);
    } else if (peek(p) == '"') {
        attr->kind = IR_ATTR_STRING;
        attr->s = parse_quoted(p);
    } else if (at_float(p)) {
        attr->kind = IR_ATTR_FLOAT;
        attr->f = parse_float(p);
    } else {
        attr->kind = IR_ATTR_INT;
        attr->i = parse_int(p);
    }
}

static void parse_attrs(parser *p, ir_node *node)
{
    int capacity = 0;
    do {
        if (node->attr_count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            ir_attr *grown = allocate(p, (size_t)capacity, sizeof *grown);
            if (!grown) return;
            if (node->attr_count) memcpy(grown, node->attrs, (size_t)node->attr_count * sizeof *grown);
            node->attrs = grown;
        }
        parse_attr(p, &node->attrs[node->attr_count++]);
    } while (take(p, ","));
    expect(p, "}");
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

/* What follows the `=` of a constant. */
static void parse_constant(parser *p, const declaration *d)
{
    const ir_tensor *tensor = parse_content(p, &d->type);
    if (tensor && ok(p)) define(p, ir_graph_add_constant(p->graph, d->name, tensor), d);
}

/* `Add`, `com.microsoft.Gelu` or `unknown "x.Foo"`; false after a fault. A word of the table ends before its `(`. */
static bool parse_operator(parser *p, const ir_op **out_op, const char **out_op_type)
{
    if (take(p, "unknown")) {
        *out_op = NULL;
        *out_op_type = parse_quoted(p);
        return ok(p);
    }
    const char *word = parse_word(p);
    if (!word) return false;
    const char *dot = strrchr(word, '.');
    const char *domain = dot ? ir_arena_strndup(p->arena, word, (size_t)(dot - word)) : "";
    if (!domain) return fail_memory(p);
    *out_op = ir_op_find(domain, dot ? dot + 1 : word);
    *out_op_type = NULL;
    return *out_op || fail(p, "the operator is not in the table");
}

enum { MAX_OPERANDS = 4096 };

/* What follows the `=` of a node: operator, inputs, name, spelling, attributes. */
static void parse_node(parser *p, const declaration *outputs, int output_count)
{
    const ir_op *op = NULL;
    const char *op_type = NULL;
    ir_value *inputs[MAX_OPERANDS];
    int input_count = 0;
    if (!parse_operator(p, &op, &op_type)) return;
    expect(p, "(");
    while (ok(p) && peek(p) != ')') {
        if (input_count == MAX_OPERANDS) {
            fail(p, "more inputs than a node may have");
            return;
        }
        if (input_count) expect(p, ",");
        inputs[input_count++] = take(p, "_") ? NULL : parse_use(p);
    }
    expect(p, ")");
    const char *name = output_count && !outputs[0].absent ? outputs[0].name : "";
    if (take(p, "@")) name = parse_quoted(p);
    if (take(p, "as")) op_type = parse_quoted(p);
    if (!ok(p)) return;
    ir_node *node = ir_graph_add_node(p->graph, NULL, op, name, inputs, input_count, output_count);
    if (!node) {
        fail_memory(p);
        return;
    }
    if (op_type) node->op_type = op_type;
    for (int i = 0; i < output_count; i++) {
        if (outputs[i].absent) {
            node->outputs[i] = NULL;
        } else {
            define(p, node->outputs[i], &outputs[i]);
        }
    }
    if (take(p, "{")) parse_attrs(p, node);
}

/* One line that declares values: an input, a constant, or the outputs of a node. */
static void parse_definition(parser *p)
{
    declaration *outputs = NULL;
    int count = 0, capacity = 0;
    while (ok(p) && peek(p) != '=') {
        if (count) expect(p, ",");
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 1;
            declaration *grown = allocate(p, (size_t)capacity, sizeof *grown);
            if (!grown) return;
            if (count) memcpy(grown, outputs, (size_t)count * sizeof *grown);
            outputs = grown;
        }
        outputs[count++] = parse_declaration(p);
    }
    expect(p, "=");
    bool one_value = count == 1 && !outputs[0].absent;
    if (one_value && take(p, "input")) {
        if (ok(p)) define(p, ir_graph_add_input(p->graph, outputs[0].name, &outputs[0].type), &outputs[0]);
    } else if (one_value && take(p, "constant")) {
        parse_constant(p, &outputs[0]);
    } else {
        parse_node(p, outputs, count);
    }
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

static void parse_header(parser *p)
{
    expect(p, "graph");
    const char *name = parse_quoted(p);
    p->graph = name ? ir_graph_create(p->arena, name) : NULL;
    if (!p->graph) fail_memory(p);
    expect(p, "{");
    if (!take(p, "length")) return;
    if (peek(p) == '"') p->graph->symbol = parse_quoted(p);
    if (take(p, "<")) {
        expect(p, "=");
        p->graph->max_length = parse_int(p);
    }
}

static void parse_outputs(parser *p)
{
    while (ok(p) && peek(p) == '%') {
        ir_value *value = parse_use(p);
        if (value && !ir_graph_add_output(p->graph, value)) fail_memory(p);
        if (!take(p, ",")) break;
    }
}

mdot_status ir_graph_parse(const char *text, const ir_graph *constants_from, ir_arena *arena, ir_graph **out_graph,
                           mdot_error *err)
{
    parser p = {.at = text, .line = 1, .arena = arena, .constants_from = constants_from, .err = err};
    p.end = text + strlen(text);
    parse_header(&p);
    while (ok(&p) && !take(&p, "return")) parse_definition(&p);
    parse_outputs(&p);
    expect(&p, "}");
    if (ok(&p) && peek(&p)) fail(&p, "something follows the graph");
    if (!ok(&p)) return p.status;
    p.graph->value_count = p.value_end;
    *out_graph = p.graph;
    return MDOT_OK;
}
