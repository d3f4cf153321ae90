/* signature_writer.c — see signatures.h. */
#include "codegen/cpu/signatures.h"

#include "plan/expr.h"

#include <string.h>

void cg_signature_add(cg_signature_writer *w, int64_t value)
{
    int64_t *numbers = ir_arena_grow(w->arena, w->numbers, w->count, &w->capacity, sizeof *w->numbers);
    w->failed = w->failed || numbers == NULL;
    if (numbers == NULL) return;
    w->numbers = numbers;
    w->numbers[w->count++] = value;
}

void cg_signature_add_real(cg_signature_writer *w, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    cg_signature_add(w, bits);
}

void cg_signature_add_dim(cg_signature_writer *w, ir_dim dim)
{
    if (!ir_dim_is_affine(dim)) { /* begins with a mark, because an affine dimension has two numbers */
        const int64_t floor[] = {INT64_MIN, dim.times, dim.step, dim.start, dim.divisor};
        for (size_t i = 0; i < sizeof floor / sizeof floor[0]; i++) cg_signature_add(w, floor[i]);
    }
    cg_signature_add(w, dim.scale);
    cg_signature_add(w, dim.offset);
}

void cg_signature_add_buffer(cg_signature_writer *w, int buffer)
{
    cg_signature_add(w, buffer < 0 ? -1 : w->position[buffer]);
}

void cg_signature_add_matrix(cg_signature_writer *w, const pl_matrix *matrix)
{
    cg_signature_add_buffer(w, matrix->buffer);
    if (matrix->buffer < 0) return;
    cg_signature_add_dim(w, matrix->offset);
    cg_signature_add_dim(w, matrix->row_stride);
}

void cg_signature_add_expr(cg_signature_writer *w, const pl_expr *expr)
{
    void *number = NULL;
    if (expr == NULL || cg_pointer_map_get(&w->nodes, expr, &number)) {
        cg_signature_add(w, -1);
        cg_signature_add(w, (int64_t)(uintptr_t)number);
        return;
    }
    cg_signature_add(w, expr->op);
    cg_signature_add(w, expr->dtype);
    if (expr->op == PL_LOAD)
        cg_signature_add_buffer(w, expr->i);
    else
        cg_signature_add(w, expr->i);
    cg_signature_add_real(w, expr->f);
    cg_signature_add(w, expr->n);
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++) cg_signature_add_expr(w, expr->arg[i]);
    cg_pointer_map_put(&w->nodes, expr, (void *)(uintptr_t)++w->node_count);
}
