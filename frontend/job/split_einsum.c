/* split_einsum.c — rewrites an Einsum as products of two operands, so costs and types are those of the matmuls that
 * frameworks run.
 *
 * The axes of an ellipsis become letters, and an implied result becomes explicit. An axis of extent 1 that another
 * operand broadcasts is dropped. A label of one operand alone is summed before the product. Three and more operands are
 * multiplied from left to right, as torch.einsum does. A product that sums no label becomes a Mul. All other products
 * become an Einsum of two operands, which the pass einsum_to_matmul turns into a MatMul. An Einsum that walks a
 * diagonal (one label twice in an operand) keeps its form. */
#include "frontend/job/job_rules.h"

#include <ctype.h>
#include <string.h>

typedef struct labels {
    int count;
    char label[MDOT_MAX_RANK];
} labels;

typedef struct factor {
    ir_value *value; /* one axis per label */
    labels axes;
} factor;

static bool has(const labels *l, char label) { return memchr(l->label, label, (size_t)l->count) != NULL; }

static int axis_of(const labels *l, char label)
{
    for (int i = 0; i < l->count; i++)
        if (l->label[i] == label) return i;
    return -1;
}

typedef struct reader {
    const char *cursor;
    bool used[128];               /* letters of the equation */
    char ellipsis[MDOT_MAX_RANK]; /* letters for the axes of an ellipsis, counted from the last axis */
    int ellipsis_rank;            /* the highest rank of an ellipsis */
} reader;

/* Chooses letters that the equation does not use. False: too few are left. */
static bool name_ellipsis(reader *r, const char *equation)
{
    int count = 0;
    for (const char *c = equation; *c; c++) r->used[*c & 127] = true;
    for (char c = 'A'; c <= 'z' && count < MDOT_MAX_RANK; c++)
        if (isalpha((unsigned char)c) && !r->used[(int)c]) r->ellipsis[count++] = c;
    return count == MDOT_MAX_RANK;
}

/* The number of letters up to the next ',' or '-'. */
static int count_letters(const char *cursor)
{
    int count = 0;
    for (; *cursor && *cursor != ',' && *cursor != '-'; cursor++) count += isalpha((unsigned char)*cursor) != 0;
    return count;
}

/* Reads the labels of one operand or of the result. False: a label occurs twice, or the rank is too high. */
static bool read_labels(reader *r, int ellipsis_rank, labels *out)
{
    out->count = 0;
    for (; *r->cursor && *r->cursor != ',' && *r->cursor != '-'; r->cursor++) {
        char c = *r->cursor;
        if (c == '.' && strncmp(r->cursor, "...", 3) == 0) {
            r->cursor += 2;
            for (int i = ellipsis_rank; i-- > 0;) {
                if (out->count == MDOT_MAX_RANK) return false;
                out->label[out->count++] = r->ellipsis[i];
            }
        } else if (isalpha((unsigned char)c)) {
            if (out->count == MDOT_MAX_RANK || has(out, c)) return false;
            out->label[out->count++] = c;
        }
    }
    return true;
}

/* The result of an equation without an arrow: the ellipsis, then letters occurring once in the operands, capitals
 * first. */
static bool imply_result(const reader *r, const factor *factors, int count, labels *out)
{
    out->count = 0;
    for (int i = r->ellipsis_rank; i-- > 0;) out->label[out->count++] = r->ellipsis[i];
    for (char c = 'A'; c <= 'z'; c++) {
        int uses = 0;
        for (int i = 0; i < count && r->used[(int)c]; i++) uses += has(&factors[i].axes, c);
        if (uses != 1) continue;
        if (out->count == MDOT_MAX_RANK) return false;
        out->label[out->count++] = c;
    }
    return true;
}

/* The equation was checked when the types were inferred. False: the Einsum keeps its form. */
static bool read_equation(const ir_node *node, factor *factors, labels *out_result)
{
    reader r = {.cursor = ir_node_string(node, "equation", "")};
    if (!name_ellipsis(&r, r.cursor)) return false;
    for (int i = 0; i < node->input_count; i++) {
        ir_value *value = node->inputs[i];
        int rank = value->type.rank - count_letters(r.cursor);
        factors[i].value = value;
        if (!read_labels(&r, rank, &factors[i].axes)) return false;
        if (rank > r.ellipsis_rank) r.ellipsis_rank = rank;
        if (*r.cursor == ',') r.cursor++;
    }
    if (*r.cursor == '\0') return imply_result(&r, factors, node->input_count, out_result);
    r.cursor += 2; /* "->" */
    return read_labels(&r, r.ellipsis_rank, out_result);
}

/* Drops the axes in `dropped`, whose extents are 1. */
static void drop_axes(ir_builder *b, factor *f, const bool *dropped)
{
    ir_dim dims[MDOT_MAX_RANK];
    labels kept = {.count = 0};
    for (int i = 0; i < f->axes.count; i++) {
        if (dropped[i]) continue;
        dims[kept.count] = f->value->type.dim[i];
        kept.label[kept.count++] = f->axes.label[i];
    }
    if (kept.count == f->axes.count) return;
    f->value = ir_build_reshape(b, f->value, dims, kept.count);
    f->axes = kept;
}

/* Drops axes of extent 1 broadcast by another factor. */
static void drop_broadcast_axes(ir_builder *b, factor *factors, int count, int choice)
{
    factor *f = &factors[choice];
    bool dropped[MDOT_MAX_RANK] = {false};
    for (int i = 0; i < f->axes.count; i++) {
        if (!ir_dim_is(f->value->type.dim[i], 1)) continue;
        for (int k = 0; k < count && !dropped[i]; k++) {
            int axis = k != choice ? axis_of(&factors[k].axes, f->axes.label[i]) : -1;
            dropped[i] = axis >= 0 && factors[k].value != NULL && !ir_dim_is(factors[k].value->type.dim[axis], 1);
        }
    }
    drop_axes(b, f, dropped);
}

/* Sums the labels that belong to this factor alone. */
static void sum_own_labels(ir_builder *b, factor *f, const labels *other_item, const labels *result)
{
    int64_t axes[MDOT_MAX_RANK];
    bool summed[MDOT_MAX_RANK] = {false};
    int count = 0;
    for (int i = 0; i < f->axes.count; i++) {
        summed[i] = !has(other_item, f->axes.label[i]) && !has(result, f->axes.label[i]);
        if (summed[i]) axes[count++] = i;
    }
    if (count == 0) return;
    f->value = ir_build_reduce(b, IR_OP_ReduceSum, f->value, axes, count);
    if (f->value != NULL) drop_axes(b, f, summed);
}

/* The factor with the axes of `order`; missing labels have extent 1. */
static ir_value *arranged(ir_builder *b, const factor *f, const labels *order)
{
    int64_t perm[MDOT_MAX_RANK];
    ir_dim dims[MDOT_MAX_RANK];
    int count = 0;
    for (int i = 0; i < order->count; i++) {
        int axis = axis_of(&f->axes, order->label[i]);
        dims[i] = axis >= 0 ? f->value->type.dim[axis] : ir_dim_number(1);
        if (axis >= 0) perm[count++] = axis;
    }
    return ir_build_reshape(b, ir_build_transpose(b, f->value, perm), dims, order->count);
}

static char *append(char *cursor, const labels *l)
{
    memcpy(cursor, l->label, (size_t)l->count);
    return cursor + l->count;
}

static ir_value *build_einsum(ir_builder *b, const factor *x, const factor *y, const labels *result)
{
    char *equation = ir_build_alloc(b, 3 * MDOT_MAX_RANK + 4, 1), *cursor = equation;
    if (equation == NULL || x->value == NULL || y->value == NULL) return NULL;
    cursor = append(cursor, &x->axes);
    *cursor++ = ',';
    cursor = append(cursor, &y->axes);
    *cursor++ = '-';
    *cursor++ = '>';
    *append(cursor, result) = '\0';
    return ir_build_with(b, IR_OP_Einsum, IR_VALUES(x->value, y->value), IR_ATTRS(IR_STRING("equation", equation)));
}

static bool share_summed_label(const factor *x, const factor *y, const labels *result)
{
    for (int i = 0; i < x->axes.count; i++)
        if (has(&y->axes, x->axes.label[i]) && !has(result, x->axes.label[i])) return true;
    return false;
}

/* Multiplies two factors. `result` names the labels that are kept, in order. */
static factor multiply(ir_builder *b, factor *x, factor *y, const labels *result)
{
    factor made = {.axes = *result};
    sum_own_labels(b, x, &y->axes, result);
    sum_own_labels(b, y, &x->axes, result);
    if (x->value == NULL || y->value == NULL) return made;
    if (share_summed_label(x, y, result)) {
        made.value = build_einsum(b, x, y, result);
        return made;
    }
    ir_value *left = arranged(b, x, result), *right = arranged(b, y, result);
    made.value = ir_build_mul(b, left, right);
    return made;
}

/* Labels kept in a product of x and y, because the result or a later factor has them. False: too many. */
static bool kept_labels(const factor *x, const factor *y, const factor *later, int later_count, const labels *result,
                        labels *out)
{
    out->count = 0;
    for (int side = 0; side < 2; side++) {
        const labels *axes = side == 0 ? &x->axes : &y->axes;
        for (int i = 0; i < axes->count; i++) {
            bool kept = has(result, axes->label[i]);
            for (int k = 0; k < later_count && !kept; k++) kept = has(&later[k].axes, axes->label[i]);
            if (!kept || has(out, axes->label[i])) continue;
            if (out->count == MDOT_MAX_RANK) return false;
            out->label[out->count++] = axes->label[i];
        }
    }
    return true;
}

/* Is the Einsum already a two-operand product, which einsum_to_matmul turns into a MatMul? */
static bool is_product(const ir_node *node, const factor *factors, const labels *result)
{
    const char *equation = ir_node_string(node, "equation", "");
    if (node->input_count != 2 || strchr(equation, '.') != NULL || strchr(equation, '>') == NULL) return false;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < factors[i].axes.count; k++) {
            char label = factors[i].axes.label[k];
            int axis = axis_of(&factors[1 - i].axes, label);
            if (axis < 0 && !has(result, label)) return false;
            if (axis >= 0 && !ir_dim_equal(factors[i].value->type.dim[k], factors[1 - i].value->type.dim[axis]))
                return false;
        }
    }
    return share_summed_label(&factors[0], &factors[1], result);
}

void fe_job_split_einsum(ir_builder *b, ir_node *node)
{
    int count = node->input_count;
    factor *factors = ir_build_alloc(b, count, sizeof *factors);
    labels result;
    if (factors == NULL || !read_equation(node, factors, &result) || is_product(node, factors, &result)) return;
    for (int i = 0; i < count; i++) drop_broadcast_axes(b, factors, count, i);
    factor made = factors[0];
    for (int i = 1; i < count && made.value != NULL; i++) {
        labels kept = result;
        bool is_last = i + 1 == count;
        if (!is_last && !kept_labels(&made, &factors[i], &factors[i + 1], count - i - 1, &result, &kept)) return;
        made = multiply(b, &made, &factors[i], &kept);
    }
    if (count == 1) sum_own_labels(b, &made, &result, &result);
    if (made.value == NULL) return;
    ir_replace(b, node->outputs[0], arranged(b, &made, &result));
}
