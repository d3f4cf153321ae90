/* einsum_to_matmul.c — rewrites an Einsum of two operands as Transpose, Reshape and MatMul if it is a matrix product,
 * so linears and attention are recognised in it.
 *
 * Every label must be in one of four classes: in both operands and the result (batch), in the first and the result
 * (rows), in the second and the result (columns), or in both operands alone (summed). Einsum's own nest handles an
 * ellipsis, a label of one operand alone, and a label that occurs twice in an operand. */
#include "ir/ops/families.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

#include <ctype.h>
#include <string.h>

typedef struct labels {
    int count;
    char label[MDOT_MAX_RANK];
} labels;

static bool has(const labels *l, char label) { return memchr(l->label, label, (size_t)l->count) != NULL; }

static int axis_of(const labels *l, char label)
{
    return (int)((const char *)memchr(l->label, label, (size_t)l->count) - l->label);
}

/* Reads distinct letters up to one of `ends`. False: another character, or a repeated letter. */
static bool read_labels(const char **cursor, const char *ends, labels *out)
{
    out->count = 0;
    for (; **cursor && strchr(ends, **cursor) == NULL; ++*cursor) {
        char c = **cursor;
        if (c == ' ') continue;
        if (!isalpha((unsigned char)c) || out->count == MDOT_MAX_RANK || has(out, c)) return false;
        out->label[out->count++] = c;
    }
    return true;
}

typedef struct equation {
    labels a, b, out;
    labels batch, rows, columns, summed; /* in the result's order; summed labels in the order of the second operand */
} equation;

static bool read_equation(const ir_node *node, equation *e)
{
    const char *cursor = ir_node_string(node, "equation", "");
    if (!read_labels(&cursor, ",", &e->a) || *cursor++ != ',') return false;
    if (!read_labels(&cursor, "-", &e->b) || strncmp(cursor, "->", 2) != 0) return false;
    cursor += 2;
    return read_labels(&cursor, "", &e->out) && e->a.count == node->inputs[0]->type.rank &&
           e->b.count == node->inputs[1]->type.rank;
}

static void put(labels *l, char label) { l->label[l->count++] = label; }

/* False: a label is in none of the four classes. */
static bool classify(equation *e)
{
    for (int i = 0; i < e->out.count; i++) {
        char label = e->out.label[i];
        bool in_a = has(&e->a, label), in_b = has(&e->b, label);
        put(in_a && in_b ? &e->batch : in_a ? &e->rows : &e->columns, label);
    }
    for (int i = 0; i < e->b.count; i++) {
        if (has(&e->out, e->b.label[i])) continue;
        if (!has(&e->a, e->b.label[i])) return false;
        put(&e->summed, e->b.label[i]);
    }
    for (int i = 0; i < e->a.count; i++)
        if (!has(&e->out, e->a.label[i]) && !has(&e->b, e->a.label[i])) return false;
    return e->summed.count > 0;
}

static ir_dim extent_of(const equation *e, const ir_node *node, char label)
{
    if (has(&e->a, label)) return node->inputs[0]->type.dim[axis_of(&e->a, label)];
    return node->inputs[1]->type.dim[axis_of(&e->b, label)];
}

/* Do shared labels have equal extents in both operands? A matmul does not broadcast a dimension of extent 1. */
static bool extents_agree(const equation *e, const ir_node *node)
{
    for (int i = 0; i < e->a.count; i++) {
        char label = e->a.label[i];
        if (has(&e->b, label) &&
            !ir_dim_equal(node->inputs[0]->type.dim[i], node->inputs[1]->type.dim[axis_of(&e->b, label)]))
            return false;
    }
    return true;
}

/* Appends the extents of the labels, or their product if they become one dimension. False: the product is not affine,
 * or too large. */
static bool append(const equation *e, const ir_node *node, const labels *l, bool joined, ir_dim *dims, int *rank)
{
    ir_dim product = ir_dim_number(1);
    for (int i = 0; i < l->count; i++) {
        ir_dim extent = extent_of(e, node, l->label[i]);
        if (!joined) dims[(*rank)++] = extent;
        if (joined && !ir_dim_mul(product, extent, &product)) return false;
    }
    if (joined) dims[(*rank)++] = product;
    return true;
}

/* The operand with its labels ordered by the lists in `order`. Each list marked in `joined` becomes one dimension. */
static ir_value *arranged(ir_builder *b, const equation *e, const ir_node *node, int operand,
                          const labels *const *order, const bool *joined)
{
    const labels *own_item = operand == 0 ? &e->a : &e->b;
    int64_t perm[MDOT_MAX_RANK];
    ir_dim dims[MDOT_MAX_RANK + 3];
    int count = 0, rank = 0;
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < order[k]->count; i++) perm[count++] = axis_of(own_item, order[k]->label[i]);
        if (!append(e, node, order[k], joined[k], dims, &rank)) return NULL;
    }
    return ir_build_reshape(b, ir_build_transpose(b, node->inputs[operand], perm), dims, rank);
}

static void rewrite_as_matmul(ir_builder *b, ir_node *node)
{
    equation e = {.batch = {.count = 0}};
    if (node->input_count != 2 || !read_equation(node, &e) || !classify(&e) || !extents_agree(&e, node)) return;
    /* If there is no batch, several row dimensions may remain, because a matrix on the right applies to all of them. */
    bool plain = e.batch.count == 0 && e.rows.count > 0;
    const labels *const left[] = {&e.batch, &e.rows, &e.summed}, *const right[] = {&e.batch, &e.summed, &e.columns};
    ir_value *x = arranged(b, &e, node, 0, left, (const bool[]){false, !plain, true});
    ir_value *y = arranged(b, &e, node, 1, right, (const bool[]){false, true, true});
    ir_value *product = ir_build_mat_mul(b, x, y);
    if (product == NULL) return;
    ir_dim dims[MDOT_MAX_RANK];
    int64_t perm[MDOT_MAX_RANK];
    labels made = {.count = 0};
    int rank = 0;
    const labels *const parts[] = {&e.batch, &e.rows, &e.columns};
    for (int k = 0; k < 3; k++) {
        append(&e, node, parts[k], false, dims, &rank);
        for (int i = 0; i < parts[k]->count; i++) put(&made, parts[k]->label[i]);
    }
    for (int i = 0; i < e.out.count; i++) perm[i] = axis_of(&made, e.out.label[i]);
    ir_replace(b, node->outputs[0], ir_build_transpose(b, ir_build_reshape(b, product, dims, rank), perm));
}

const ir_rule ir_rules_einsum_to_matmul[IR_OP_COUNT] = {[IR_OP_Einsum] = rewrite_as_matmul};
