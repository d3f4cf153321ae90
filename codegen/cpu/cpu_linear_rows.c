/* cpu_linear_rows.c — prepares rows of A and applies epilogues for the linear kernel: see cpu_linear.h. */
#include "codegen/cpu/cpu_linear.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_values.h"

LLVMValueRef cg_linear_epilogue(cg_emitter *e, const cg_linear_block *l, LLVMValueRef row, LLVMValueRef column,
                                LLVMValueRef acc)
{
    if (l->k->epilogue == NULL) return acc;
    cg_scope scope = {
        .buffers = l->buffers,
        .loops = {cg_iadd(e, l->first_row, row), column},
        .vector_loop = 1,
        .lanes = cg_lanes(acc),
        .acc = {acc},
    };
    if (cg_stored_dtype(e->target, &l->plan->buffers[l->k->out.buffer]) == MDOT_DTYPE_BF16)
        scope.rounded = l->k->epilogue;
    LLVMValueRef value = cg_expr(e, &scope, l->plan, l->k->epilogue);
    return cg_lanes(value) == scope.lanes ? value : cg_splat(e, value, scope.lanes);
}

LLVMValueRef cg_linear_bias(cg_emitter *e, const cg_linear_block *l, LLVMValueRef column)
{
    LLVMTypeRef type = cg_vector(e, e->f32, e->target->lanes);
    if (l->k->bias < 0) return cg_const(e, type, -0.0); /* x + -0 is x, even for x = -0 */
    LLVMValueRef address = cg_at(e, e->f32, l->buffers[l->k->bias], column);
    return cg_load(e, type, address, 4 * (unsigned)e->target->lanes);
}

void cg_finish_vector(cg_emitter *e, const cg_linear_block *l, LLVMValueRef source, LLVMValueRef row,
                      LLVMValueRef column, int width)
{
    LLVMTypeRef type = cg_vector(e, e->f32, width);
    LLVMValueRef sum = cg_load(e, type, source, 4 * (unsigned)e->target->lanes);
    LLVMValueRef out = cg_at(e, l->out_type, cg_at(e, l->out_type, l->out, cg_imul(e, row, l->out_stride)), column);
    cg_store_elements(e, l->plan, l->k->out.buffer, cg_linear_epilogue(e, l, row, column, sum), out);
}

void cg_finish_rows(cg_emitter *e, const cg_linear_block *l, int64_t columns, LLVMValueRef source, LLVMValueRef target)
{
    int lanes = e->target->lanes;
    CG_FOR (e, row, source, target, 1) {
        LLVMValueRef stage = cg_at(e, e->f32, l->stage, cg_imul(e, row.index, cg_int(e, l->width)));
        for (int64_t c = 0; c < columns; c += lanes) {
            int width = (int)(columns - c < lanes ? columns - c : lanes);
            LLVMValueRef column = cg_iadd(e, l->column, cg_int(e, c));
            cg_finish_vector(e, l, cg_at(e, e->f32, stage, cg_int(e, c)), row.index, column, width);
        }
    }
}

int64_t cg_copy_stride(const cg_linear_block *l)
{
    if (l->matmul == CG_MATMUL_AMX) return l->k->k + cg_bf16_padding(l->k->k);
    return l->matmul == CG_MATMUL_BF16 ? 2 * l->steps : l->k->k;
}

/* Copies `count` elements from A's row, rounded to bf16 or converted to f32. */
static void copy_elements(cg_emitter *e, const cg_linear_block *l, LLVMValueRef source, LLVMValueRef target,
                          LLVMValueRef address, int count)
{
    LLVMTypeRef stored = cg_stored_type(e, l->plan, l->k->a.buffer);
    LLVMValueRef value = cg_load_elements(e, l->plan, l->k->a.buffer, cg_at(e, stored, source, address), count);
    if (l->matmul >= CG_MATMUL_BF16) value = cg_f32_to_bf16(e, value);
    cg_store(e, value, cg_at(e, l->a_type, target, address), 0);
}

/* Copies `count` adjacent elements. */
static void copy_run(cg_emitter *e, const cg_linear_block *l, LLVMValueRef source, LLVMValueRef target, int64_t count)
{
    int lanes = e->target->lanes;
    int64_t whole = count / lanes * lanes;
    if (whole > 0)
        CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, whole), lanes)
            copy_elements(e, l, source, target, column.index, lanes);
    if (count > whole) copy_elements(e, l, source, target, cg_int(e, whole), (int)(count - whole));
}

/* Copies the window at `from`: the dimensions from `d` on. */
static void copy_window(cg_emitter *e, const cg_linear_block *l, LLVMValueRef from, LLVMValueRef to, int d)
{
    const pl_window_dims *dims = &l->k->windows->columns;
    LLVMTypeRef stored = cg_stored_type(e, l->plan, l->k->a.buffer);
    int64_t inner = 1;
    if (d + 1 == dims->count || d + 1 == PL_MAX_WINDOW_DIMS) {
        copy_run(e, l, from, to, dims->extent[d].offset);
        return;
    }
    for (int i = d + 1; i < dims->count; i++) inner *= dims->extent[i].offset;
    CG_FOR_NONEMPTY (e, position, cg_int(e, 0), cg_int(e, dims->extent[d].offset), 1) {
        LLVMValueRef source = cg_at(e, stored, from, cg_imul(e, position.index, cg_dim(e, dims->stride[d])));
        LLVMValueRef target = cg_at(e, l->a_type, to, cg_imul(e, position.index, cg_int(e, inner)));
        copy_window(e, l, source, target, d + 1);
    }
}

/* Elements between the first position and position `index`, in row-major order. */
static LLVMValueRef distance_at(cg_emitter *e, const pl_window_dims *dims, LLVMValueRef index)
{
    LLVMValueRef distance = cg_int(e, 0);
    for (int d = dims->count - 1; d >= 0; d--) {
        LLVMValueRef stride = cg_dim(e, dims->stride[d]), position = index;
        if (d > 0) {
            LLVMValueRef extent = cg_dim(e, dims->extent[d]), outer = LLVMBuildUDiv(e->builder, index, extent, "");
            position = cg_isub(e, index, cg_imul(e, outer, extent));
            index = outer;
        }
        distance = cg_iadd(e, distance, cg_imul(e, position, stride));
    }
    return distance;
}

LLVMValueRef cg_window_column(cg_emitter *e, const pl_windows *windows, LLVMValueRef column)
{
    return distance_at(e, &windows->columns, column);
}

void cg_note_windows(cg_emitter *e, const cg_linear_block *l)
{
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), l->row_count, 1) {
        LLVMValueRef distance = distance_at(e, &l->k->windows->rows, cg_iadd(e, l->first_row, row.index));
        cg_store(e, distance, cg_at(e, e->i64, l->distances, row.index), 8);
    }
}

void cg_copy_rows(cg_emitter *e, const cg_linear_block *l, LLVMValueRef from, LLVMValueRef from_stride,
                  LLVMValueRef count)
{
    bool has_windows = l->k->windows != NULL;
    int64_t stride = cg_copy_stride(l), padding = stride - l->k->k;
    LLVMTypeRef stored = cg_stored_type(e, l->plan, l->k->a.buffer);
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), count, 1) {
        LLVMValueRef distance = has_windows ? distance_at(e, &l->k->windows->rows, cg_iadd(e, l->first_row, row.index))
                                            : cg_imul(e, row.index, from_stride);
        LLVMValueRef source = cg_at(e, stored, from, distance);
        LLVMValueRef target = cg_at(e, l->a_type, l->copy, cg_imul(e, row.index, cg_int(e, stride)));
        for (int64_t i = 0; i < padding; i++)
            cg_store(e, cg_const_int(l->a_type, 0), cg_at(e, l->a_type, target, cg_int(e, i)), 0);
        target = cg_at(e, l->a_type, target, cg_int(e, padding));
        if (has_windows)
            copy_window(e, l, source, target, 0);
        else
            copy_run(e, l, source, target, l->k->k);
    }
}
