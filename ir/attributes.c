/* attributes.c — reads and sets a node's attributes, and reads the known content of a value.
 *
 * Attribute arrays and strings never change in place, so clones may share them: setting creates new ones. */
#include "ir/graph.h"

#include "ir/tensor.h"

#include <string.h>

const ir_attr *ir_node_attr(const ir_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
    return NULL;
}

const ir_attr *ir_node_ints(const ir_node *node, const char *name)
{
    const ir_attr *attr = ir_node_attr(node, name);
    return attr != NULL && attr->kind == IR_ATTR_INTS ? attr : NULL;
}

void ir_node_perm(const ir_node *transpose, int rank, int64_t *out_perm)
{
    const ir_attr *attr = ir_node_ints(transpose, "perm");
    for (int i = 0; i < rank; i++) {
        int64_t axis = attr != NULL ? attr->ints[i] : rank - 1 - i;
        out_perm[i] = axis < 0 ? axis + rank : axis;
    }
}

int64_t ir_node_int(const ir_node *node, const char *name, int64_t fallback)
{
    const ir_attr *attr = ir_node_attr(node, name);
    return attr != NULL && attr->kind == IR_ATTR_INT ? attr->i : fallback;
}

int ir_node_axis(const ir_node *node, int64_t fallback, int rank)
{
    int64_t axis = ir_node_int(node, "axis", fallback);
    return (int)(axis < 0 ? axis + rank : axis);
}

double ir_node_float(const ir_node *node, const char *name, double fallback)
{
    const ir_attr *attr = ir_node_attr(node, name);
    return attr != NULL && attr->kind == IR_ATTR_FLOAT ? attr->f : fallback;
}

const char *ir_node_string(const ir_node *node, const char *name, const char *fallback)
{
    const ir_attr *attr = ir_node_attr(node, name);
    return attr != NULL && attr->kind == IR_ATTR_STRING ? attr->s : fallback;
}

/* The attribute with copies of what it points to. */
static bool copy_content(ir_arena *arena, ir_attr *attr)
{
    if (attr->kind == IR_ATTR_STRING) attr->s = ir_arena_strdup(arena, attr->s);
    if (attr->kind != IR_ATTR_INTS) return attr->kind != IR_ATTR_STRING || attr->s != NULL;
    int64_t *copy = IR_NEW_ARRAY(arena, int64_t, attr->count);
    if (copy != NULL && attr->count) memcpy(copy, attr->ints, (size_t)attr->count * sizeof *copy);
    attr->ints = copy;
    return copy != NULL;
}

bool ir_node_set(ir_graph *graph, ir_node *node, ir_attr attr)
{
    if (!copy_content(graph->arena, &attr)) return false;
    for (int i = 0; i < node->attr_count; i++) {
        if (strcmp(node->attrs[i].name, attr.name) == 0) {
            attr.name = node->attrs[i].name;
            node->attrs[i] = attr;
            return true;
        }
    }
    attr.name = ir_arena_strdup(graph->arena, attr.name);
    ir_attr *grown = IR_NEW_ARRAY(graph->arena, ir_attr, node->attr_count + 1);
    if (attr.name == NULL || grown == NULL) return false;
    if (node->attr_count) memcpy(grown, node->attrs, (size_t)node->attr_count * sizeof *grown);
    grown[node->attr_count++] = attr;
    node->attrs = grown;
    return true;
}

void ir_node_remove_attr(ir_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++) {
        if (strcmp(node->attrs[i].name, name) != 0) continue;
        node->attr_count--;
        memmove(&node->attrs[i], &node->attrs[i + 1], (size_t)(node->attr_count - i) * sizeof *node->attrs);
        return;
    }
}

/* False for a string, for a floating element that is not an integer, and for a value that exceeds a dimension's
 * range. */
static bool load_known(const ir_tensor *tensor, int64_t index, ir_dim *out)
{
    if (tensor->dtype == MDOT_DTYPE_STRING) return false;
    if (!ir_dtype_is_float(tensor->dtype)) {
        int64_t integer = ir_tensor_integer(tensor, index);
        if (tensor->dtype == MDOT_DTYPE_U64 && integer < 0) return false;
        *out = ir_dim_number(integer);
        return true;
    }
    double real = ir_tensor_real(tensor, index);
    if (!(real >= -0x1p53 && real <= 0x1p53) || real != (double)(int64_t)real) return false;
    *out = ir_dim_number((int64_t)real);
    return true;
}

bool ir_value_known(const ir_value *value, ir_dim out[static IR_MAX_KNOWN], int *out_count)
{
    const ir_tensor *tensor = value->constant;
    if (tensor != NULL) {
        /* A shape held in floats has one element per dimension. Larger tensors are weights and are ignored here. */
        int maximum = ir_dtype_is_float(tensor->dtype) ? MDOT_MAX_RANK : IR_MAX_KNOWN;
        if (tensor->data == NULL || tensor->count > maximum) return false;
        for (int64_t i = 0; i < tensor->count; i++)
            if (!load_known(tensor, i, &out[i])) return false;
        *out_count = (int)tensor->count;
        return true;
    }
    if (value->known == NULL) return false;
    for (int i = 0; i < value->known->count; i++) out[i] = value->known->element[i];
    *out_count = value->known->count;
    return true;
}

bool ir_value_ints(const ir_value *value, int64_t out[static IR_MAX_KNOWN], int *out_count)
{
    ir_dim dims[IR_MAX_KNOWN];
    int count;
    if (!ir_value_known(value, dims, &count)) return false;
    for (int i = 0; i < count; i++)
        if (!ir_dim_is_number(dims[i])) return false;
    for (int i = 0; i < count; i++) out[i] = dims[i].offset;
    *out_count = count;
    return true;
}

bool ir_value_int(const ir_value *value, int64_t *out)
{
    int64_t elements[IR_MAX_KNOWN];
    int count;
    if (!ir_value_ints(value, elements, &count) || count != 1) return false;
    *out = elements[0];
    return true;
}

bool ir_value_scalar(const ir_value *value, double *out)
{
    const ir_tensor *tensor = value->constant;
    if (tensor == NULL || tensor->data == NULL || tensor->count != 1 || tensor->dtype == MDOT_DTYPE_STRING)
        return false;
    if (ir_dtype_is_float(tensor->dtype)) {
        *out = ir_tensor_real(tensor, 0);
    } else {
        int64_t integer = ir_tensor_integer(tensor, 0);
        *out = tensor->dtype == MDOT_DTYPE_U64 ? (double)(uint64_t)integer : (double)integer;
    }
    return true;
}

int64_t ir_type_count_at(const ir_type *type, int64_t length)
{
    int64_t dims[MDOT_MAX_RANK];
    if (type->rank < 0) return -1;
    for (int i = 0; i < type->rank; i++) {
        ir_dim d = type->dim[i];
        int64_t scaled, steps = 0;
        if (__builtin_mul_overflow(d.scale, length, &scaled)) return -1;
        if (__builtin_add_overflow(scaled, d.offset, &dims[i])) return -1;
        if (d.times == 0) continue;
        if (__builtin_mul_overflow(d.step, length, &steps) || __builtin_add_overflow(steps, d.start, &steps)) return -1;
        if (__builtin_mul_overflow(steps / d.divisor, d.times, &steps)) return -1;
        if (__builtin_add_overflow(dims[i], steps, &dims[i])) return -1;
    }
    return ir_count_elements(type->rank, dims);
}

bool ir_type_equal(const ir_type *a, const ir_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!ir_dim_equal(a->dim[i], b->dim[i])) return false;
    return true;
}

bool ir_only_units_differ(const ir_type *a, const ir_type *b)
{
    int i = 0, j = 0;
    for (;;) {
        while (i < a->rank && ir_dim_is(a->dim[i], 1)) i++;
        while (j < b->rank && ir_dim_is(b->dim[j], 1)) j++;
        if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
        if (!ir_dim_equal(a->dim[i++], b->dim[j++])) return false;
    }
}
