/* graph_text.c — prints a graph (form: graph_text.h): for dumps after passes, golden tests and debugging. */
#include "ir/graph_text.h"
#include "base/text.h"

#include "ir/ops/families.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    FILE *out;
    ir_arena *scratch; /* wide forms of inline constants */
    bool *printed;     /* by id: constants that are already printed */
    bool failed;       /* memory is exhausted */
} printer;

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    for (const unsigned char *p = data, *end = p + size; p < end; p++) hash = (hash ^ *p) * UINT64_C(1099511628211);
    return hash;
}

uint64_t ir_tensor_hash(const ir_tensor *tensor)
{
    int32_t header[] = {(int32_t)tensor->dtype, tensor->rank};
    uint64_t hash = hash_bytes(UINT64_C(14695981039346656037), header, sizeof header);
    hash = hash_bytes(hash, tensor->dims, (size_t)tensor->rank * sizeof tensor->dims[0]);
    return hash_bytes(hash, tensor->data, (size_t)tensor->count * mdot_dtype_size_bytes(tensor->dtype));
}

bool ir_text_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static bool is_word(const char *text)
{
    if (!*text || (*text >= '0' && *text <= '9')) return false;
    while (ir_text_is_word_char(*text)) text++;
    return !*text;
}

/* Prints characters that are unsafe for a terminal as their bytes, so every dump is safe to view, with any names in the
 * model. */
static void print_quoted(printer *p, const char *text)
{
    fputc('"', p->out);
    while (*text != '\0') {
        int length = bs_printable_length(text);
        if (length == 0) {
            fprintf(p->out, "\\x%02x", (unsigned char)*text++);
            continue;
        }
        if (*text == '"' || *text == '\\') fputc('\\', p->out);
        fwrite(text, 1, (size_t)length, p->out);
        text += length;
    }
    fputc('"', p->out);
}

/* The shortest digits that read back as `value`, through float if `single`. */
static void shortest(double value, bool single, char out[BS_NUMBER_BYTES])
{
    const char *end;
    for (int digits = 1; digits <= 17; digits++) {
        double back = bs_number_read(bs_number_print(value, digits, out), &end);
        if ((single ? (double)(float)back : back) == value) return;
    }
}

/* Prints a number so that it reads as a float: with a point, an exponent, or as nan or inf. */
static void print_float(printer *p, double value, bool may_be_single, const char *suffix)
{
    char text[BS_NUMBER_BYTES];
    const char *end;
    if (isnan(value)) {
        fputs("nan", p->out);
        return;
    }
    bool single = may_be_single && (double)(float)value == value;
    shortest(value, single, text);
    fputs(text, p->out);
    if (strpbrk(text, ".einf") == NULL) fputs(".0", p->out);
    if (single && bs_number_read(text, &end) != value) fputs(suffix, p->out);
}

static void print_dim(printer *p, ir_dim d)
{
    char text[IR_DIM_TEXT_BYTES];
    fputs(ir_dim_text(d, NULL, text, sizeof text), p->out);
}

static void print_type(printer *p, const ir_type *type)
{
    fputs(type->dtype == MDOT_DTYPE_NONE ? "?" : mdot_dtype_name(type->dtype), p->out);
    fputc('[', p->out);
    if (type->rank < 0) fputc('*', p->out);
    for (int i = 0; i < type->rank; i++) {
        if (i) fputc(',', p->out);
        print_dim(p, type->dim[i]);
    }
    fputc(']', p->out);
}

static void print_declaration(printer *p, const ir_value *value)
{
    fprintf(p->out, "%%%d ", value->id);
    print_quoted(p, value->name);
    fputs(" : ", p->out);
    print_type(p, &value->type);
    if (value->known == NULL) return;
    fputs(" known [", p->out);
    for (int i = 0; i < value->known->count; i++) {
        if (i) fputs(", ", p->out);
        print_dim(p, value->known->element[i]);
    }
    fputc(']', p->out);
}

static void print_element(printer *p, const ir_wide *wide, int64_t i)
{
    if (wide->f != NULL)
        print_float(p, wide->f[i], wide->dtype != MDOT_DTYPE_F64, "");
    else if (wide->dtype == MDOT_DTYPE_U64)
        fprintf(p->out, "%" PRIu64, (uint64_t)wide->i[i]);
    else
        fprintf(p->out, "%" PRId64, wide->i[i]);
}

/* `[1, 2]`, `#hash` or `unread`. */
static void print_content(printer *p, const ir_tensor *tensor)
{
    if (tensor->data == NULL || mdot_dtype_size_bytes(tensor->dtype) == 0) {
        fputs("unread", p->out);
        return;
    }
    if (tensor->count > IR_TEXT_INLINE) {
        fprintf(p->out, "#%016" PRIx64, ir_tensor_hash(tensor));
        return;
    }
    const ir_wide *wide = ir_wide_from_tensor(p->scratch, tensor);
    if (wide == NULL) {
        p->failed = true;
        return;
    }
    fputc('[', p->out);
    for (int64_t i = 0; i < wide->count; i++) {
        if (i) fputs(", ", p->out);
        print_element(p, wide, i);
    }
    fputc(']', p->out);
}

static void print_constant(printer *p, const ir_value *value)
{
    if (value == NULL || value->constant == NULL || p->printed[value->id]) return;
    p->printed[value->id] = true;
    fputs("  ", p->out);
    print_declaration(p, value);
    fputs(" = constant ", p->out);
    print_content(p, value->constant);
    fputc('\n', p->out);
}

/* An empty array states its kind: ints[], floats[], strings[]. */
static void print_array(printer *p, const ir_attr *attr)
{
    static const char *const kinds[] = {
        [IR_ATTR_INTS] = "ints", [IR_ATTR_FLOATS] = "floats", [IR_ATTR_STRINGS] = "strings"};
    if (attr->count == 0) fputs(kinds[attr->kind], p->out);
    fputc('[', p->out);
    for (int i = 0; i < attr->count; i++) {
        if (i) fputs(", ", p->out);
        if (attr->kind == IR_ATTR_INTS) fprintf(p->out, "%" PRId64, attr->ints[i]);
        if (attr->kind == IR_ATTR_FLOATS) print_float(p, attr->floats[i], true, "f");
        if (attr->kind == IR_ATTR_STRINGS) print_quoted(p, attr->strings[i]);
    }
    fputc(']', p->out);
}

static void print_tensor(printer *p, const ir_tensor *tensor)
{
    ir_type type = {.dtype = tensor->dtype, .rank = tensor->rank};
    for (int i = 0; i < tensor->rank; i++) type.dim[i] = ir_dim_number(tensor->dims[i]);
    fputs("tensor ", p->out);
    print_type(p, &type);
    fputc(' ', p->out);
    print_content(p, tensor);
}

static void print_attr(printer *p, const ir_attr *attr)
{
    if (is_word(attr->name))
        fputs(attr->name, p->out);
    else
        print_quoted(p, attr->name);
    fputc('=', p->out);
    switch (attr->kind) {
    case IR_ATTR_INT: fprintf(p->out, "%" PRId64, attr->i); break;
    case IR_ATTR_FLOAT: print_float(p, attr->f, true, "f"); break;
    case IR_ATTR_STRING: print_quoted(p, attr->s); break;
    case IR_ATTR_INTS:
    case IR_ATTR_FLOATS:
    case IR_ATTR_STRINGS: print_array(p, attr); break;
    case IR_ATTR_TENSOR: print_tensor(p, attr->tensor); break;
    case IR_ATTR_GRAPH: fputs("graph", p->out); break;
    }
}

static bool is_table_name(const ir_op *op, const char *op_type)
{
    size_t domain = strlen(op->domain);
    if (domain == 0) return strcmp(op->name, op_type) == 0;
    return strncmp(op->domain, op_type, domain) == 0 && op_type[domain] == '.' &&
           strcmp(op->name, op_type + domain + 1) == 0;
}

static void print_operator(printer *p, const ir_node *node)
{
    if (node->op != NULL) {
        fprintf(p->out, "%s%s%s", node->op->domain, node->op->domain[0] ? "." : "", node->op->name);
    } else {
        fputs("unknown ", p->out);
        print_quoted(p, node->op_type);
    }
}

static void print_node(printer *p, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) print_constant(p, node->inputs[i]);
    fputs("  ", p->out);
    for (int i = 0; i < node->output_count; i++) {
        if (i) fputs(", ", p->out);
        if (node->outputs[i] != NULL)
            print_declaration(p, node->outputs[i]);
        else
            fputc('_', p->out);
    }
    fputs(node->output_count ? " = " : "= ", p->out);
    print_operator(p, node);
    for (int i = 0; i < node->input_count; i++) {
        fputs(i ? ", " : "(", p->out);
        if (node->inputs[i] != NULL)
            fprintf(p->out, "%%%d", node->inputs[i]->id);
        else
            fputc('_', p->out);
    }
    fputs(node->input_count ? ")" : "()", p->out);
    const ir_value *first = node->output_count ? node->outputs[0] : NULL;
    if (first == NULL || strcmp(first->name, node->name) != 0) {
        fputs(" @", p->out);
        print_quoted(p, node->name);
    }
    if (node->op != NULL && !is_table_name(node->op, node->op_type)) {
        fputs(" as ", p->out);
        print_quoted(p, node->op_type);
    }
    for (int i = 0; i < node->attr_count; i++) {
        fputs(i ? ", " : " {", p->out);
        print_attr(p, &node->attrs[i]);
    }
    fputs(node->attr_count ? "}\n" : "\n", p->out);
}

static void print_header(printer *p, const ir_graph *graph)
{
    fputs("graph ", p->out);
    print_quoted(p, graph->name);
    fputs(" {\n", p->out);
    if (graph->symbol == NULL && graph->max_length == INT64_MAX) return;
    fputs("  length", p->out);
    if (graph->symbol != NULL) {
        fputc(' ', p->out);
        print_quoted(p, graph->symbol);
    }
    if (graph->max_length != INT64_MAX) fprintf(p->out, " <= %" PRId64, graph->max_length);
    fputc('\n', p->out);
}

static void print_graph(printer *p, const ir_graph *graph)
{
    print_header(p, graph);
    for (int i = 0; i < graph->input_count; i++) {
        fputs("  ", p->out);
        print_declaration(p, graph->inputs[i]);
        fputs(" = input\n", p->out);
    }
    for (const ir_node *node = graph->first; node != NULL; node = node->next) print_node(p, node);
    for (int i = 0; i < graph->output_count; i++) print_constant(p, graph->outputs[i]);
    fputs("  return", p->out);
    for (int i = 0; i < graph->output_count; i++) fprintf(p->out, "%s%%%d", i ? ", " : " ", graph->outputs[i]->id);
    fputs("\n}\n", p->out);
}

char *ir_graph_print(const ir_graph *graph, ir_arena *arena)
{
    bs_memstream stream;
    size_t length = 0;
    printer p = {.scratch = ir_arena_create(0)};
    if (bs_memstream_open(&stream)) p.out = stream.file;
    if (p.scratch != NULL) p.printed = IR_NEW_ARRAY(p.scratch, bool, graph->value_count);
    if (p.out != NULL && p.printed != NULL) print_graph(&p, graph);
    char *whole = bs_memstream_close(&stream, &length), *text = NULL;
    if (whole != NULL && p.printed != NULL && !p.failed) text = ir_arena_strndup(arena, whole, length);
    free(whole);
    ir_arena_destroy(p.scratch);
    return text;
}
