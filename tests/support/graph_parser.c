/* graph_parser.c — reads a graph back from the form that ir/graph_text.h describes. Values are found by the id in the
 * text, and keep it. */
#include "tests/support/graph_parser.h"
#include "ir/graph_text.h"
#include "tests/support/graph_scanner.h"

#include <string.h>

enum { MAX_ID = 1 << 20 }; /* limit of the id table that a text can request */

typedef struct parser {
    ir_scanner scan;
    ir_graph *graph;
    const ir_graph *constants_from;
    ir_value **values; /* by id */
    int value_capacity, value_end;
} parser;

/* ---- Content --------------------------------------------------------------------------------------------------- */

/* The constant of `constants_from` with this hash. NULL: unknown. */
static const ir_tensor *find_content(const ir_graph *graph, uint64_t hash)
{
    for (const ir_node *node = graph != NULL ? graph->first : NULL; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_tensor *tensor = node->inputs[i] != NULL ? node->inputs[i]->constant : NULL;
            if (tensor != NULL && tensor->data != NULL && ir_tensor_hash(tensor) == hash) return tensor;
        }
        for (int i = 0; i < node->attr_count; i++) {
            const ir_tensor *tensor = node->attrs[i].kind == IR_ATTR_TENSOR ? node->attrs[i].tensor : NULL;
            if (tensor != NULL && tensor->data != NULL && ir_tensor_hash(tensor) == hash) return tensor;
        }
    }
    for (int i = 0; graph != NULL && i < graph->output_count; i++) {
        const ir_tensor *tensor = graph->outputs[i]->constant;
        if (tensor != NULL && tensor->data != NULL && ir_tensor_hash(tensor) == hash) return tensor;
    }
    return NULL;
}

static const void *parse_inline(parser *p, const ir_tensor *shape)
{
    /* Every element takes at least one character, so a shape larger than the text is refused before allocation. */
    if (shape->count > p->scan.end - p->scan.at)
        return ir_scan_fail(&p->scan, "fewer elements than the type has"), NULL;
    if (mdot_dtype_size_bytes(shape->dtype) == 0)
        return ir_scan_fail(&p->scan, "only a type with elements may have content"), NULL;
    ir_wide *wide = ir_scan_ok(&p->scan) ? ir_wide_create(p->scan.arena, shape->dtype, shape->rank, shape->dims) : NULL;
    if (wide == NULL) return ir_scan_fail_memory(&p->scan), NULL;
    ir_scan_expect(&p->scan, "[");
    for (int64_t i = 0; i < wide->count && ir_scan_ok(&p->scan); i++) {
        if (i) ir_scan_expect(&p->scan, ",");
        if (wide->f != NULL) {
            wide->f[i] = ir_scan_float(&p->scan);
        } else if (wide->dtype == MDOT_DTYPE_U64) {
            wide->i[i] = (int64_t)ir_scan_unsigned(&p->scan, 10);
        } else {
            wide->i[i] = ir_wrap_integer(wide->dtype, ir_scan_int(&p->scan));
        }
    }
    if (!ir_scan_expect(&p->scan, "]")) return NULL;
    const ir_tensor *tensor = ir_tensor_from_wide(p->scan.arena, wide);
    return tensor != NULL ? tensor->data : (ir_scan_fail_memory(&p->scan), NULL);
}

static const ir_tensor *parse_content(parser *p, const ir_type *type)
{
    ir_tensor *tensor = ir_scan_allocate(&p->scan, 1, sizeof *tensor);
    if (tensor == NULL) return NULL;
    tensor->dtype = type->dtype;
    tensor->rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        if (!ir_dim_is_number(type->dim[i]))
            return ir_scan_fail(&p->scan, "the dimensions of a constant must be numbers"), NULL;
        tensor->dims[i] = type->dim[i].offset;
    }
    tensor->count = type->rank < 0 ? -1 : ir_count_elements(type->rank, tensor->dims);
    if (tensor->count < 0) return ir_scan_fail(&p->scan, "a constant needs a shape"), NULL;
    if (ir_scan_take(&p->scan, "unread")) return tensor;
    if (ir_scan_take(&p->scan, "#")) {
        const ir_tensor *content = find_content(p->constants_from, ir_scan_unsigned(&p->scan, 16));
        if (content != NULL) tensor->data = content->data;
        return tensor;
    }
    tensor->data = parse_inline(p, tensor);
    return ir_scan_ok(&p->scan) ? tensor : NULL;
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
    ir_scan_expect(&p->scan, "%");
    int64_t id = ir_scan_int(&p->scan);
    if (ir_scan_ok(&p->scan) && (id < 0 || id >= MAX_ID)) ir_scan_fail(&p->scan, "a value's number is out of range");
    return ir_scan_ok(&p->scan) ? (int)id : 0;
}

static declaration parse_declaration(parser *p)
{
    declaration d = {.absent = ir_scan_take(&p->scan, "_")};
    if (d.absent) return d;
    d.id = parse_id(p);
    d.name = ir_scan_quoted(&p->scan);
    ir_scan_expect(&p->scan, ":");
    d.type = ir_scan_type(&p->scan);
    if (ir_scan_take(&p->scan, "known")) d.known = ir_scan_known(&p->scan);
    return d;
}

/* Gives a newly built value the id, type and content of its declaration. */
static void define(parser *p, ir_value *value, const declaration *d)
{
    if (value == NULL) ir_scan_fail_memory(&p->scan);
    if (!ir_scan_ok(&p->scan)) return;
    if (d->id < p->value_capacity && p->values[d->id] != NULL) {
        ir_scan_fail(&p->scan, "a value is defined twice");
        return;
    }
    if (d->id >= p->value_capacity) {
        int capacity = p->value_capacity ? p->value_capacity : 64;
        while (capacity <= d->id) capacity *= 2;
        ir_value **grown = ir_scan_allocate(&p->scan, (size_t)capacity, sizeof(ir_value *));
        if (grown == NULL) return;
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
    ir_value *value = ir_scan_ok(&p->scan) && id < p->value_capacity ? p->values[id] : NULL;
    if (value == NULL) ir_scan_fail(&p->scan, "a value is used before it is defined");
    return value;
}

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static void parse_array(parser *p, ir_attr *attr)
{
    bool of_strings = ir_scan_peek(&p->scan) == '"';
    bool of_floats = !of_strings && ir_scan_at_float(&p->scan);
    attr->kind = of_strings ? IR_ATTR_STRINGS : of_floats ? IR_ATTR_FLOATS : IR_ATTR_INTS;
    int capacity = 0;
    int64_t *ints = NULL;
    double *floats = NULL;
    const char **strings = NULL;
    do {
        if (attr->count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            void *grown = ir_scan_allocate(&p->scan, (size_t)capacity, 8); /* all three have elements of 8 bytes */
            const void *old = of_strings  ? (const void *)strings
                              : of_floats ? (const void *)floats
                                          : (const void *)ints;
            if (grown == NULL) return;
            if (attr->count) memcpy(grown, old, (size_t)attr->count * 8);
            ints = grown, floats = grown, strings = grown;
        }
        if (of_strings)
            strings[attr->count] = ir_scan_quoted(&p->scan);
        else if (of_floats)
            floats[attr->count] = ir_scan_float(&p->scan);
        else
            ints[attr->count] = ir_scan_int(&p->scan);
        attr->count++;
    } while (ir_scan_take(&p->scan, ","));
    ir_scan_expect(&p->scan, "]");
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
        if (!ir_scan_take(&p->scan, kinds[i].word)) continue;
        attr->kind = kinds[i].kind;
        return ir_scan_expect(&p->scan, "[") && ir_scan_expect(&p->scan, "]");
    }
    return false;
}

static void parse_attr(parser *p, ir_attr *attr)
{
    attr->name = ir_scan_peek(&p->scan) == '"' ? ir_scan_quoted(&p->scan) : ir_scan_word(&p->scan);
    ir_scan_expect(&p->scan, "=");
    if (take_empty_array(p, attr)) return;
    if (ir_scan_take(&p->scan, "[")) {
        parse_array(p, attr);
    } else if (ir_scan_take(&p->scan, "graph")) {
        attr->kind = IR_ATTR_GRAPH;
    } else if (ir_scan_take(&p->scan, "tensor")) {
        attr->kind = IR_ATTR_TENSOR;
        ir_type type = ir_scan_type(&p->scan);
        attr->tensor = parse_content(p, &type);
    } else if (ir_scan_peek(&p->scan) == '"') {
        attr->kind = IR_ATTR_STRING;
        attr->s = ir_scan_quoted(&p->scan);
    } else if (ir_scan_at_float(&p->scan)) {
        attr->kind = IR_ATTR_FLOAT;
        attr->f = ir_scan_float(&p->scan);
    } else {
        attr->kind = IR_ATTR_INT;
        attr->i = ir_scan_int(&p->scan);
    }
}

static void parse_attrs(parser *p, ir_node *node)
{
    int capacity = 0;
    do {
        if (node->attr_count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            ir_attr *grown = ir_scan_allocate(&p->scan, (size_t)capacity, sizeof *grown);
            if (grown == NULL) return;
            if (node->attr_count) memcpy(grown, node->attrs, (size_t)node->attr_count * sizeof *grown);
            node->attrs = grown;
        }
        parse_attr(p, &node->attrs[node->attr_count++]);
    } while (ir_scan_take(&p->scan, ","));
    ir_scan_expect(&p->scan, "}");
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

/* Parses the text behind the `=` of a constant. */
static void parse_constant(parser *p, const declaration *d)
{
    const ir_tensor *tensor = parse_content(p, &d->type);
    if (tensor != NULL && ir_scan_ok(&p->scan)) define(p, ir_graph_add_constant(p->graph, d->name, tensor), d);
}

/* `Add`, `com.microsoft.Gelu` or `unknown "x.Foo"`. False after an error. A word of the table ends before its `(`. */
static bool parse_operator(parser *p, const ir_op **out_op, const char **out_op_type)
{
    if (ir_scan_take(&p->scan, "unknown")) {
        *out_op = NULL;
        *out_op_type = ir_scan_quoted(&p->scan);
        return ir_scan_ok(&p->scan);
    }
    const char *word = ir_scan_word(&p->scan);
    if (word == NULL) return false;
    const char *dot = strrchr(word, '.');
    const char *domain = dot != NULL ? ir_arena_strndup(p->scan.arena, word, (size_t)(dot - word)) : "";
    if (domain == NULL) return ir_scan_fail_memory(&p->scan);
    *out_op = ir_op_find(domain, dot != NULL ? dot + 1 : word);
    *out_op_type = NULL;
    return *out_op != NULL || ir_scan_fail(&p->scan, "unknown operator");
}

enum { MAX_OPERANDS = 4096 };

/* Parses the text behind the `=` of a node: operator, inputs, name, operator name in the file, attributes. */
static void parse_node(parser *p, const declaration *outputs, int output_count)
{
    const ir_op *op = NULL;
    const char *op_type = NULL;
    ir_value *inputs[MAX_OPERANDS];
    int input_count = 0;
    if (!parse_operator(p, &op, &op_type)) return;
    ir_scan_expect(&p->scan, "(");
    while (ir_scan_ok(&p->scan) && ir_scan_peek(&p->scan) != ')') {
        if (input_count == MAX_OPERANDS) {
            ir_scan_fail(&p->scan, "more inputs than a node may have");
            return;
        }
        if (input_count) ir_scan_expect(&p->scan, ",");
        inputs[input_count++] = ir_scan_take(&p->scan, "_") ? NULL : parse_use(p);
    }
    ir_scan_expect(&p->scan, ")");
    const char *name = output_count && !outputs[0].absent ? outputs[0].name : "";
    if (ir_scan_take(&p->scan, "@")) name = ir_scan_quoted(&p->scan);
    if (ir_scan_take(&p->scan, "as")) op_type = ir_scan_quoted(&p->scan);
    if (!ir_scan_ok(&p->scan)) return;
    ir_node *node = ir_graph_add_node(p->graph, NULL, op, name, inputs, input_count, output_count);
    if (node == NULL) {
        ir_scan_fail_memory(&p->scan);
        return;
    }
    if (op_type != NULL) node->op_type = op_type;
    for (int i = 0; i < output_count; i++) {
        if (outputs[i].absent) {
            node->outputs[i] = NULL;
        } else {
            define(p, node->outputs[i], &outputs[i]);
        }
    }
    if (ir_scan_take(&p->scan, "{")) parse_attrs(p, node);
}

/* One line that declares values: an input, a constant, or a node's outputs. */
static void parse_definition(parser *p)
{
    declaration *outputs = NULL;
    int count = 0, capacity = 0;
    while (ir_scan_ok(&p->scan) && ir_scan_peek(&p->scan) != '=') {
        if (count) ir_scan_expect(&p->scan, ",");
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 1;
            declaration *grown = ir_scan_allocate(&p->scan, (size_t)capacity, sizeof *grown);
            if (grown == NULL) return;
            if (count) memcpy(grown, outputs, (size_t)count * sizeof *grown);
            outputs = grown;
        }
        outputs[count++] = parse_declaration(p);
    }
    ir_scan_expect(&p->scan, "=");
    bool one_value = count == 1 && !outputs[0].absent;
    if (one_value && ir_scan_take(&p->scan, "input")) {
        if (ir_scan_ok(&p->scan))
            define(p, ir_graph_add_input(p->graph, outputs[0].name, &outputs[0].type), &outputs[0]);
    } else if (one_value && ir_scan_take(&p->scan, "constant")) {
        parse_constant(p, &outputs[0]);
    } else {
        parse_node(p, outputs, count);
    }
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

static void parse_header(parser *p)
{
    ir_scan_expect(&p->scan, "graph");
    const char *name = ir_scan_quoted(&p->scan);
    p->graph = name != NULL ? ir_graph_create(p->scan.arena, name) : NULL;
    if (p->graph == NULL) ir_scan_fail_memory(&p->scan);
    ir_scan_expect(&p->scan, "{");
    if (!ir_scan_take(&p->scan, "length")) return;
    if (ir_scan_peek(&p->scan) == '"') p->graph->symbol = ir_scan_quoted(&p->scan);
    if (ir_scan_take(&p->scan, "<")) {
        ir_scan_expect(&p->scan, "=");
        p->graph->max_length = ir_scan_int(&p->scan);
    }
}

static void parse_outputs(parser *p)
{
    while (ir_scan_ok(&p->scan) && ir_scan_peek(&p->scan) == '%') {
        ir_value *value = parse_use(p);
        if (value != NULL && !ir_graph_add_output(p->graph, value)) ir_scan_fail_memory(&p->scan);
        if (!ir_scan_take(&p->scan, ",")) break;
    }
}

mdot_status ir_graph_parse(const char *text, const ir_graph *constants_from, ir_arena *arena, ir_graph **out_graph,
                           mdot_error *err)
{
    ir_scanner scan = {.at = text, .end = text + strlen(text), .line = 1, .arena = arena, .err = err};
    parser p = {.scan = scan, .constants_from = constants_from};
    parse_header(&p);
    while (ir_scan_ok(&p.scan) && !ir_scan_take(&p.scan, "return")) parse_definition(&p);
    parse_outputs(&p);
    ir_scan_expect(&p.scan, "}");
    if (ir_scan_ok(&p.scan) && ir_scan_peek(&p.scan)) ir_scan_fail(&p.scan, "unexpected text after the graph");
    if (!ir_scan_ok(&p.scan)) return p.scan.status;
    p.graph->value_count = p.value_end;
    *out_graph = p.graph;
    return MDOT_OK;
}
