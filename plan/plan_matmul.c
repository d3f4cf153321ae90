/* plan_matmul.c — matmuls that are not linear kernels: MatMul with broadcast batches, Einsum, and linears whose rows
 * are not affine in L. Each becomes one nest, whose body is the operands' product, summed over the shared indices. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

#include <ctype.h>
#include <string.h>

static mdot_status finish(pl_builder *b, const ir_node *node, pl_nest *nest, const pl_expr *body,
                          const pl_expr *const *index)
{
    if (body == NULL) return pl_fault(b);
    const pl_expr *result = body;
    if (nest->reduce_count > 0) {
        nest->reducer = PL_REDUCE_SUM;
        nest->body = body;
        result = pl_acc(b->arena, 0, body->dtype);
    }
    const ir_value *bias = ir_node_opcode(node) == IR_OP_Linear ? ir_node_input(node, 2) : NULL;
    if (bias != NULL) result = pl_op2(b, PL_ADD, result, pl_operand_at(b, bias, node->outputs[0]->type.rank, index));
    return pl_finish_nest(b, node, nest, result, index);
}

/* Operand index: the batch dimensions of the result, right-aligned and broadcast, then the given row and column. */
static const pl_expr *matrix_at(pl_builder *b, const ir_value *v, const pl_expr *const *batch, int batch_rank,
                                const pl_expr *row, const pl_expr *column)
{
    const pl_expr *index[MDOT_MAX_RANK];
    int rank = v->type.rank;
    for (int d = 0; d < rank - 2; d++)
        index[d] = pl_is_unit(v->type.dim[d]) ? b->zero : batch[batch_rank - (rank - 2) + d];
    index[rank - 2] = row;
    index[rank - 1] = column;
    return pl_value_at(b, v, index);
}

/* A vector operand is a matrix of one row (left) or one column (right); the result lacks that dimension. */
static mdot_status emit_mat_mul(pl_builder *b, const ir_node *node)
{
    const ir_value *left = node->inputs[0], *right = node->inputs[1], *result = node->outputs[0];
    bool left_is_vector = left->type.rank == 1, right_is_vector = right->type.rank == 1;
    const pl_expr *index[MDOT_MAX_RANK];
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, result->type.rank, result->type.dim, index);
    const pl_expr *k = pl_add_reduction(b, &nest, left->type.dim[left->type.rank - 1]);
    int batch_rank = result->type.rank - !left_is_vector - !right_is_vector;
    const pl_expr *row = left_is_vector ? b->zero : index[batch_rank];
    const pl_expr *column = right_is_vector ? b->zero : index[result->type.rank - 1];
    const pl_expr *x = left_is_vector ? pl_value_at(b, left, &k) : matrix_at(b, left, index, batch_rank, row, k);
    const pl_expr *y = right_is_vector ? pl_value_at(b, right, &k) : matrix_at(b, right, index, batch_rank, k, column);
    return finish(b, node, &nest, pl_op2(b, PL_MUL, x, y), index);
}

enum { MAX_LABELS = 52 + MDOT_MAX_RANK, ELLIPSIS_LABEL = 52 };

/* Labels of one term, one per dimension: 0 … 51 for letters, from ELLIPSIS_LABEL on for the dimensions of "...",
 * right-aligned so that shorter ones broadcast. -1: malformed for this rank. */
static int read_term(const char *text, const char *end, int rank, int *out_labels)
{
    int letters = 0, count = 0;
    for (const char *c = text; c < end; c++) letters += isalpha((unsigned char)*c) != 0;
    for (const char *c = text; c < end; c++) {
        if (isalpha((unsigned char)*c)) {
            if (count == MDOT_MAX_RANK) return -1;
            out_labels[count++] = islower((unsigned char)*c) ? *c - 'a' : 26 + *c - 'A';
        } else if (*c == '.') {
            int hidden = rank - letters;
            if (hidden < 0 || end - c < 3 || count + hidden > MDOT_MAX_RANK) return -1;
            for (int d = 0; d < hidden; d++) out_labels[count++] = ELLIPSIS_LABEL + MDOT_MAX_RANK - hidden + d;
            c += 2;
        } else if (*c != ' ') {
            return -1;
        }
    }
    return count;
}

typedef struct einsum {
    int term_count;
    int rank[MDOT_MAX_RANK + 1];
    int label[MDOT_MAX_RANK + 1][MDOT_MAX_RANK]; /* labels of the operands, then of the result */
    ir_dim dim[MAX_LABELS];
    bool is_used[MAX_LABELS];
    int times[MAX_LABELS]; /* occurrences of a label in the operands */
} einsum;

/* If "->" is absent, the result has the ellipsis and then the letters that occur once, in alphabetical order. */
static int implicit_result(const einsum *e, int *out_labels)
{
    int count = 0;
    for (int k = 0; k < MDOT_MAX_RANK; k++)
        if (e->is_used[ELLIPSIS_LABEL + k]) out_labels[count++] = ELLIPSIS_LABEL + k;
    for (int k = 0; k < 52; k++) {
        int label = (k + 26) % 52; /* capitals sort before small letters */
        if (e->times[label] == 1 && count < MDOT_MAX_RANK) out_labels[count++] = label;
    }
    return count;
}

static bool read_equation(const ir_node *node, einsum *e)
{
    const char *text = ir_node_string(node, "equation", ""), *arrow = strstr(text, "->");
    const char *stop = arrow != NULL ? arrow : text + strlen(text);
    if (node->input_count > MDOT_MAX_RANK) return false;
    *e = (einsum){.term_count = node->input_count};
    for (int k = 0; k < node->input_count; k++) {
        const ir_type *type = &node->inputs[k]->type;
        const char *comma = memchr(text, ',', (size_t)(stop - text)), *end = comma != NULL ? comma : stop;
        if ((e->rank[k] = read_term(text, end, type->rank, e->label[k])) != type->rank) return false;
        for (int d = 0; d < type->rank; d++) {
            int label = e->label[k][d];
            if (!e->is_used[label] || pl_is_unit(e->dim[label])) e->dim[label] = type->dim[d];
            e->is_used[label] = true;
            e->times[label]++;
        }
        text = comma != NULL ? comma + 1 : stop;
    }
    int rank = node->outputs[0]->type.rank;
    int *labels = e->label[e->term_count];
    int count = arrow != NULL ? read_term(arrow + 2, arrow + strlen(arrow), rank, labels) : implicit_result(e, labels);
    return count == rank;
}

static mdot_status emit_einsum(pl_builder *b, const ir_node *node)
{
    einsum e;
    if (!read_equation(node, &e)) {
        pl_reject(b, node, "the equation does not match the operands");
        return pl_fault(b);
    }
    const pl_expr *index[MDOT_MAX_RANK], *source_index[MDOT_MAX_RANK], *position[MAX_LABELS] = {NULL}, *body = NULL;
    const ir_type *type = &node->outputs[0]->type;
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, type->rank, type->dim, index);
    for (int d = 0; d < type->rank; d++) position[e.label[e.term_count][d]] = index[d];
    for (int label = 0; label < MAX_LABELS; label++) {
        if (!e.is_used[label] || position[label] != NULL) continue;
        if (nest.loop_count + nest.reduce_count == PL_MAX_LOOPS) {
            pl_reject(b, node, "more than %d indices", PL_MAX_LOOPS);
            return pl_fault(b);
        }
        position[label] = pl_add_reduction(b, &nest, e.dim[label]);
    }
    for (int k = 0; k < e.term_count; k++) {
        const ir_value *v = node->inputs[k];
        for (int d = 0; d < e.rank[k]; d++)
            source_index[d] = pl_is_unit(v->type.dim[d]) ? b->zero : position[e.label[k][d]];
        const pl_expr *factor = pl_value_at(b, v, source_index);
        body = k ? pl_op2(b, PL_MUL, body, factor) : factor;
    }
    return finish(b, node, &nest, body, index);
}

mdot_status pl_emit_matmul(pl_builder *b, const ir_node *node)
{
    return ir_node_opcode(node) == IR_OP_Einsum ? emit_einsum(b, node) : emit_mat_mul(b, node);
}
