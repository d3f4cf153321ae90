/* einsum.c — Einsum: sums of products over labelled axes.
 *
 * Labels are the letters of the equation. The axes of an ellipsis get their own labels, counted from the last. A
 * label that occurs twice in one operand walks its diagonal. The output's labels are the outer loops; all other
 * labels are summed.
 */
#include "ir/ops/operands.h"

#include <ctype.h>
#include <string.h>

enum { ELLIPSIS_LABELS = 52, LABEL_COUNT = ELLIPSIS_LABELS + MDOT_MAX_RANK };

typedef struct subscripts { /* axis labels for one operand or the output */
    int rank;
    int label[MDOT_MAX_RANK];
} subscripts;

typedef struct einsum {
    mdot_dtype dtype;
    subscripts output;
    int summed_count;
    int summed[LABEL_COUNT];
    ir_dim extent[LABEL_COUNT]; /* 0 × L + 0 for absent labels */
    bool occurs[LABEL_COUNT];
} einsum;

/* Reads subscripts up to a ',', a '-' or the end. An ellipsis becomes `ellipsis_rank` labels. False: malformed. */
static bool read_subscripts(const char **cursor, int ellipsis_rank, subscripts *out)
{
    const char *at = *cursor;
    out->rank = 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        if (strncmp(at, "...", 3) == 0) {
            if (out->rank + ellipsis_rank > MDOT_MAX_RANK) return false;
            for (int i = ellipsis_rank; i > 0; i--) out->label[out->rank++] = ELLIPSIS_LABELS + i - 1;
            at += 2;
        } else if (isascii((unsigned char)*at) && isalpha((unsigned char)*at) && out->rank < MDOT_MAX_RANK) {
            out->label[out->rank++] = islower((unsigned char)*at) ? *at - 'a' : *at - 'A' + 26;
        } else {
            return false;
        }
    }
    *cursor = at;
    return true;
}

static mdot_status bad_equation(const ir_operands *args, int operand)
{
    return ir_malformed(args, "equation \"%s\" does not match input %d", ir_node_string(args->node, "equation", ""),
                        operand);
}

/* Reads the subscripts of operand i at *cursor, and skips the comma behind them. */
static mdot_status read_operand(const ir_operands *args, int i, const char **cursor, ir_type *out_type,
                                subscripts *out_subscripts)
{
    subscripts letters;
    const char *again = *cursor;
    BS_TRY(ir_operand_need(args, i, "operand", -1, out_type));
    bool valid = read_subscripts(&again, 0, &letters) && letters.rank <= out_type->rank &&
                 read_subscripts(cursor, out_type->rank - letters.rank, out_subscripts) &&
                 out_subscripts->rank == out_type->rank;
    if (!valid) return bad_equation(args, i);
    bool is_last = i + 1 == args->node->input_count;
    if (is_last ? **cursor == ',' : **cursor != ',') return bad_equation(args, i);
    if (!is_last) ++*cursor;
    return MDOT_OK;
}

/* Merges an axis extent into the label's: they must be equal, or one of them 1. */
static mdot_status unify_extent(const ir_operands *args, einsum *e, int label, ir_dim dim)
{
    if (!e->occurs[label] || ir_dim_is(e->extent[label], 1))
        e->extent[label] = dim;
    else if (!ir_dim_equal(e->extent[label], dim) && !ir_dim_is(dim, 1))
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){e->extent[label], dim}),
                         "a label of equation \"%s\" has two extents", ir_node_string(args->node, "equation", ""));
    e->occurs[label] = true;
    return MDOT_OK;
}

/* The output of an equation without an arrow: the ellipsis, then the letters that occur once, in the order of
 * characters, capitals first. */
static void imply_output(const int *uses, int ellipsis_rank, subscripts *out)
{
    out->rank = 0;
    for (int i = ellipsis_rank; i > 0; i--) out->label[out->rank++] = ELLIPSIS_LABELS + i - 1;
    for (int k = 0; k < 52 && out->rank < MDOT_MAX_RANK; k++) {
        int label = k < 26 ? k + 26 : k - 26;
        if (uses[label] == 1) out->label[out->rank++] = label;
    }
}

static mdot_status read_output(const ir_operands *args, const char *cursor, const int *uses, int ellipsis_rank,
                               einsum *e)
{
    if (*cursor == '\0') {
        imply_output(uses, ellipsis_rank, &e->output);
        return MDOT_OK;
    }
    bool valid = strncmp(cursor, "->", 2) == 0;
    unsigned char seen[LABEL_COUNT] = {0};
    cursor += 2;
    valid = valid && read_subscripts(&cursor, ellipsis_rank, &e->output) && *cursor == '\0';
    for (int i = 0; valid && i < e->output.rank; i++) {
        int label = e->output.label[i];
        valid = e->occurs[label] && !seen[label]++;
    }
    if (valid) return MDOT_OK;
    return ir_malformed(args, "equation \"%s\" has no valid output", ir_node_string(args->node, "equation", ""));
}

static mdot_status read_einsum(const ir_operands *args, einsum *out)
{
    einsum e = {.dtype = MDOT_DTYPE_NONE};
    int uses[LABEL_COUNT] = {0}, ellipsis_rank = 0;
    const char *cursor = ir_node_string(args->node, "equation", "");
    for (int i = 0; i < args->node->input_count; i++) {
        ir_type type;
        subscripts axes;
        BS_TRY(read_operand(args, i, &cursor, &type, &axes));
        BS_TRY(ir_operand_need_same(args, i, 0));
        for (int k = 0; k < type.rank; k++) {
            int label = axes.label[k];
            uses[label]++;
            if (label >= ELLIPSIS_LABELS + ellipsis_rank) ellipsis_rank = label - ELLIPSIS_LABELS + 1;
            BS_TRY(unify_extent(args, &e, label, type.dim[k]));
        }
        e.dtype = type.dtype;
    }
    BS_TRY(read_output(args, cursor, uses, ellipsis_rank, &e));
    bool kept[LABEL_COUNT] = {false};
    for (int i = 0; i < e.output.rank; i++) kept[e.output.label[i]] = true;
    for (int label = 0; label < LABEL_COUNT; label++)
        if (e.occurs[label] && !kept[label]) e.summed[e.summed_count++] = label;
    *out = e;
    return MDOT_OK;
}

mdot_status ir_result_einsum(const ir_operands *args, ir_type *out_type)
{
    einsum e;
    BS_TRY(read_einsum(args, &e));
    *out_type = (ir_type){e.dtype, e.output.rank, {{0}}};
    for (int i = 0; i < e.output.rank; i++) out_type->dim[i] = e.extent[e.output.label[i]];
    return MDOT_OK;
}

typedef struct term { /* one operand in the sum of products */
    const ir_wide *tensor;
    int64_t stride[LABEL_COUNT]; /* by label; 0 if the operand lacks it or repeats */
} term;

/* Strides by label for operand i; the axes of a diagonal add up. */
static mdot_status read_term(const ir_operands *args, int i, const char **cursor, term *out)
{
    ir_type type;
    subscripts axes;
    int64_t strides[MDOT_MAX_RANK];
    BS_TRY(read_operand(args, i, cursor, &type, &axes));
    out->tensor = args->tensors[i];
    ir_strides(type.rank, out->tensor->dims, strides);
    for (int k = 0; k < type.rank; k++)
        if (out->tensor->dims[k] != 1) out->stride[axes.label[k]] += strides[k];
    return MDOT_OK;
}

/* The offset of a term's element at an index over the labels of `count` loops. */
static int64_t term_offset(const term *t, int count, const int *labels, const int64_t *index)
{
    int64_t offset = 0;
    for (int i = 0; i < count; i++) offset += index[i] * t->stride[labels[i]];
    return offset;
}

/* Sums the products at one index of the output. */
static void contract(const einsum *e, const term *terms, int term_count, const int64_t *outer, ir_wide *out,
                     int64_t target)
{
    int64_t extents[LABEL_COUNT], index[LABEL_COUNT] = {0}, count = 1;
    for (int i = 0; i < e->summed_count; i++) {
        extents[i] = e->extent[e->summed[i]].offset;
        count *= extents[i];
    }
    double sum = 0;
    uint64_t integer_sum = 0;
    for (int64_t n = 0; n < count; n++) {
        double product = 1;
        uint64_t integer_product = 1;
        for (int t = 0; t < term_count; t++) {
            int64_t offset = term_offset(&terms[t], e->output.rank, e->output.label, outer) +
                             term_offset(&terms[t], e->summed_count, e->summed, index);
            if (out->f != NULL)
                product *= terms[t].tensor->f[offset];
            else
                integer_product *= (uint64_t)terms[t].tensor->i[offset];
        }
        sum += product;
        integer_sum += integer_product;
        ir_next_index(e->summed_count, extents, index);
    }
    if (out->f != NULL)
        out->f[target] = sum;
    else
        out->i[target] = ir_wrap_integer(out->dtype, (int64_t)integer_sum);
}

mdot_status ir_eval_einsum(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    einsum e;
    BS_TRY(read_einsum(&args, &e));
    term *terms = IR_NEW_ARRAY(arena, term, node->input_count);
    if (terms == NULL) return ir_fail_memory(node, err);
    const char *cursor = ir_node_string(node, "equation", "");
    for (int i = 0; i < node->input_count; i++) BS_TRY(read_term(&args, i, &cursor, &terms[i]));
    int64_t index[MDOT_MAX_RANK] = {0};
    for (int64_t k = 0; k < out[0]->count; k++) {
        contract(&e, terms, node->input_count, index, out[0], k);
        ir_next_index(out[0]->rank, out[0]->dims, index);
    }
    return MDOT_OK;
}

/* Per point of all loops: a product of n operands, and one addition if labels are summed. */
void ir_cost_einsum(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    einsum e;
    if (read_einsum(&args, &e) != MDOT_OK) return;
    double points = 1;
    for (int label = 0; label < LABEL_COUNT; label++)
        if (e.occurs[label]) points *= (double)ir_dim_at(e.extent[label], length);
    out_cost->flops = points * (node->input_count - 1 + (e.summed_count > 0));
}
