/* cse.c — common subexpression elimination (graph_builder.h): one walk in topological order with a hash table of the
 * unique nodes.
 *
 * Two nodes are equal if their operator, attributes and inputs are equal. Small constants (scalars, axes, shapes) are
 * first merged by content, because exporters write them anew for every use. Large ones are left to the weight packer,
 * which stores equal bytes once. A graph with keeps_equals only shares constants, and one with keeps_products merges
 * no products.
 */
#include "ir/passes/graph_builder.h"

#include <string.h>

enum { SMALL_BYTES = 256 };

typedef struct table { /* open addressing; the size is a power of two, at least twice the number of entries */
    size_t size;
    ir_node **nodes;
    ir_value **constants;
} table;

/* FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}
static const uint64_t hash_start = 0xcbf29ce484222325u;

static size_t tensor_bytes(const ir_tensor *tensor)
{
    return (size_t)tensor->count * mdot_dtype_size_bytes(tensor->dtype);
}

static bool is_small(const ir_tensor *tensor)
{
    return tensor->data != NULL && tensor->count <= SMALL_BYTES && tensor_bytes(tensor) <= SMALL_BYTES &&
           tensor->dtype != MDOT_DTYPE_STRING;
}

/* The first constant with this content: `value` itself, or the constant that replaces it. */
static ir_value *unique_constant(table *unique, ir_value *value)
{
    const ir_tensor *tensor = value->constant;
    if (tensor == NULL || !is_small(tensor)) return value;
    uint64_t hash = hash_bytes(hash_start, tensor->data, tensor_bytes(tensor));
    for (size_t i = hash & (unique->size - 1);; i = (i + 1) & (unique->size - 1)) {
        ir_value **slot = &unique->constants[i];
        if (*slot == NULL) *slot = value;
        if (*slot == value || ir_tensor_equal((*slot)->constant, tensor)) return *slot;
    }
}

static bool equal_bytes(const void *a, const void *b, int count, size_t size)
{
    return count == 0 || memcmp(a, b, (size_t)count * size) == 0;
}

static bool equal_attrs(const ir_attr *a, const ir_attr *b)
{
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0) return false;
    switch (a->kind) {
    case IR_ATTR_INT: return a->i == b->i;
    case IR_ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case IR_ATTR_STRING: return strcmp(a->s, b->s) == 0;
    case IR_ATTR_INTS: return a->count == b->count && equal_bytes(a->ints, b->ints, a->count, sizeof *a->ints);
    case IR_ATTR_FLOATS: return a->count == b->count && equal_bytes(a->floats, b->floats, a->count, sizeof *a->floats);
    default: /* strings, tensors and sub-graphs are rare and not worth the comparison */ return false;
    }
}

static bool equal_nodes(const ir_node *a, const ir_node *b)
{
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count) return false;
    if (a->attr_count != b->attr_count) return false;
    for (int i = 0; i < a->input_count; i++)
        if (a->inputs[i] != b->inputs[i]) return false;
    for (int i = 0; i < a->output_count; i++)
        if ((a->outputs[i] == NULL) != (b->outputs[i] == NULL)) return false;
    for (int i = 0; i < a->attr_count; i++) {
        const ir_attr *other_attr = ir_node_attr(b, a->attrs[i].name);
        if (other_attr == NULL || !equal_attrs(&a->attrs[i], other_attr)) return false;
    }
    return true;
}

static ir_node *unique_node(table *unique, ir_node *node)
{
    uint64_t hash = hash_bytes(hash_start, &node->op, sizeof node->op);
    for (int i = 0; i < node->input_count; i++) {
        int id = node->inputs[i] != NULL ? node->inputs[i]->id : -1;
        hash = hash_bytes(hash, &id, sizeof id);
    }
    for (size_t i = hash & (unique->size - 1);; i = (i + 1) & (unique->size - 1)) {
        ir_node **slot = &unique->nodes[i];
        if (*slot == NULL) *slot = node;
        if (*slot == node || equal_nodes(*slot, node)) return *slot;
    }
}

static table create_table(const ir_graph *graph, ir_arena *arena)
{
    size_t entries = 1, size = 1;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) entries += 1 + (size_t)node->input_count;
    while (size < 2 * entries) size *= 2;
    table unique = {.size = size};
    unique.nodes = IR_NEW_ARRAY(arena, ir_node *, size);
    unique.constants = IR_NEW_ARRAY(arena, ir_value *, size);
    return unique;
}

static bool is_kept(const ir_graph *graph, const ir_node *node)
{
    static const int products[] = {IR_OP_MatMul, IR_OP_Gemm, IR_OP_FusedMatMul, IR_OP_MatMulInteger,
                                   IR_OP_Einsum, IR_OP_Conv, IR_OP_LSTM,        IR_OP_ConvTranspose,
                                   IR_OP_GRU,    IR_OP_RNN,  IR_OP_Attention};
    bool is_product = false;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        is_product = is_product || node->op == &ir_ops[products[i]];
    return graph->keeps_equals || (graph->keeps_products && is_product);
}

mdot_status ir_eliminate_common_subexpressions(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    ir_arena *scratch = ir_arena_create(0);
    table unique = {0};
    if (scratch != NULL) unique = create_table(graph, scratch);
    if (unique.nodes == NULL || unique.constants == NULL) {
        ir_arena_destroy(scratch);
        return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    }
    ir_builder b = {.graph = graph, .err = err};
    for (ir_node *node = graph->first; node != NULL && b.status == MDOT_OK; node = node->next) {
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL) ir_node_set_input(node, i, unique_constant(&unique, node->inputs[i]));
        if (node->op == NULL || !(node->op->traits & IR_STATELESS) || is_kept(graph, node)) continue;
        ir_node *first = unique_node(&unique, node);
        b.at = node;
        b.name = node->name;
        b.first_new = graph->value_count;
        for (int i = 0; first != node && i < node->output_count; i++)
            if (node->outputs[i] != NULL && node->outputs[i]->use_count)
                ir_replace(&b, node->outputs[i], first->outputs[i]);
    }
    ir_arena_destroy(scratch);
    ir_graph_remove_dead(graph);
    if (b.status == MDOT_OK) *out_changed = b.changed;
    return b.status;
}
