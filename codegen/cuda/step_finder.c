/* step_finder.c — see cuda_stages.h. */
#include "codegen/cuda/cuda_stages.h"

#include "plan/expr.h"

void cu_note_access(cu_step_finder *f, int buffer, bool is_written, cu_range elements)
{
    if (buffer < 0) return;
    cu_step *s = f->step;
    int64_t unit = pl_unit_elements(&f->buffers[buffer].type, 0);
    bool is_local = s->distribution == CU_SINGLE;
    if (s->distribution == CU_TILED && unit > 0)
        is_local = elements.unit == unit && elements.low >= 0 && elements.high < unit;
    for (int k = 0; k < s->access_count; k++) {
        cu_access *a = &s->accesses[k];
        if (a->buffer != buffer || a->is_written != is_written) continue;
        a->is_local = a->is_local && is_local;
        return;
    }
    s->accesses[s->access_count++] = (cu_access){buffer, is_written, is_local};
}

void cu_note_loads(cu_step_finder *f, const pl_expr *e)
{
    if (e == NULL) return;
    if (e->op == PL_LOAD) cu_note_access(f, e->i, false, cu_range_of(&f->step->space, e->arg[0]));
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) cu_note_loads(f, e->arg[k]);
}

cu_range cu_range_times(ir_dim stride, cu_range s)
{
    if (s.unit == 0 && s.low == 0 && s.high == 0) return s;
    if (ir_dim_is_number(stride)) return cu_range_scale(s, stride.offset);
    return cu_range_between(INT64_MIN, INT64_MAX);
}

cu_range cu_offset_range(ir_dim offset)
{
    return ir_dim_is_number(offset) ? cu_range_constant(offset.offset) : cu_range_between(INT64_MIN, INT64_MAX);
}

cu_range cu_columns_range(int64_t count) { return cu_range_between(0, count > 0 ? count - 1 : 0); }

void cu_note_matrix(cu_step_finder *f, const pl_matrix *m, bool is_written, cu_range columns)
{
    cu_range row = cu_range_times(m->row_stride, f->step->space.loop[0]);
    cu_note_access(f, m->buffer, is_written, cu_range_add(cu_range_add(cu_offset_range(m->offset), row), columns));
}

cu_range cu_extent_range(ir_dim extent, int64_t max_length)
{
    return cu_columns_range(ir_dim_is_number(extent) ? extent.offset : ir_dim_most(extent, 1, max_length));
}

cu_step *cu_add_step(cu_step_finder *f, const pl_kernel *kernel, cu_part part)
{
    cu_stages *stages = f->stages;
    int maximum = 4 + 3 * PL_MAX_STORES + stages->plan->buffer_count;
    cu_step *s = &stages->steps[stages->step_count];
    *s = (cu_step){.kernel = kernel,
                   .kind = stages->schedule->kinds[kernel->kind],
                   .part = part,
                   .distribution = CU_SINGLE,
                   .scale = 1,
                   .loop = -1};
    s->space.max_length = stages->plan->max_length;
    s->space.max_steps = f->max_steps;
    s->accesses = IR_NEW_ARRAY(f->arena, cu_access, maximum);
    if (s->accesses == NULL) return NULL;
    stages->step_count++;
    f->step = s;
    return s;
}

bool cu_writes_locally(const cu_step *s)
{
    for (int k = 0; k < s->access_count; k++)
        if (s->accesses[k].is_written && !s->accesses[k].is_local) return false;
    return true;
}

void cu_tile_loop(cu_step_finder *f, int loop, ir_dim extent)
{
    cu_step *s = f->step;
    s->distribution = CU_TILED;
    s->scale = extent.scale;
    s->space.loop[loop] = (cu_range){extent.scale, 0, extent.scale - 1};
}

void cu_distribute_rows(cu_step_finder *f, ir_dim rows, ir_dim columns, void (*note_accesses)(cu_step_finder *f))
{
    cu_step *s = f->step;
    int64_t longest = f->stages->plan->max_length;
    s->loop = 0;
    s->space.loop_count = 2;
    s->space.loop[0] = cu_extent_range(rows, longest);
    s->space.loop[1] = cu_extent_range(columns, longest);
    if (cu_is_units(rows) && !f->is_one_block) cu_tile_loop(f, 0, rows);
    note_accesses(f);
    if (s->distribution == CU_TILED && cu_writes_locally(s)) return;
    bool is_small = ir_dim_is_number(rows) && (f->is_one_block || rows.offset < CU_MIN_FREE_ROWS);
    s->distribution = is_small ? CU_SINGLE : CU_FREE;
    s->scale = is_small ? rows.offset : 1;
    s->space.loop[0] = cu_extent_range(rows, longest);
    note_accesses(f);
}
