/* grid_stages.c — finds the steps of a plan, the units that each touches, and the necessary barriers (see grid_stages.h).
 *
 * Stages are levels of the dependence graph, so their number is minimal. A step that fits several stages goes to the
 * last of them, next to its readers, so that data between them stays in shared memory.
 */
#include "codegen/cuda/grid_stages.h"

#include <limits.h>
#include <stdlib.h>

/* A reduction of the length to more results than this runs whole in one block. */
enum { MOST_PARTIAL_POINTS = 4096 };
/* Minimum numbers of rows and points without length that are worth spreading over blocks. */
enum { FEWEST_FREE_ROWS = 32, FEWEST_FREE_POINTS = 4096 };

typedef struct finder {
    cu_stages *stages;
    ir_arena *arena;
    pl_buffer *buffers;
    cu_step *step; /* the step being described */
} finder;

int64_t cu_elements_per_unit(const ir_type *type)
{
    int64_t count = 1;
    bool has_length = false;
    for (int d = 0; d < type->rank; d++) {
        ir_dim dim = type->dim[d];
        bool is_length = !ir_dim_is_number(dim);
        if (is_length && (has_length || dim.offset != 0 || dim.scale < 0)) return 0;
        if (__builtin_mul_overflow(count, is_length ? dim.scale : dim.offset, &count)) return 0;
        has_length = has_length || is_length;
    }
    return has_length ? count : 0;
}

/* ---- Accesses ---------------------------------------------------------------------------------------------------- */

static void note(finder *f, int buffer, bool is_written, cu_range elements)
{
    if (buffer < 0) return;
    cu_step *s = f->step;
    int64_t unit = cu_elements_per_unit(&f->buffers[buffer].type);
    bool is_local = s->spread == CU_SINGLE;
    if (s->spread == CU_TILED && unit > 0)
        is_local = elements.unit == unit && elements.low >= 0 && elements.high < unit;
    for (int k = 0; k < s->access_count; k++) {
        cu_access *a = &s->accesses[k];
        if (a->buffer != buffer || a->is_written != is_written) continue;
        a->is_local = a->is_local && is_local;
        return;
    }
    s->accesses[s->access_count++] = (cu_access){buffer, is_written, is_local};
}

static void note_loads(finder *f, const pl_expr *e)
{
    if (e == NULL) return;
    if (e->op == PL_LOAD) note(f, e->i, false, cu_range_of(&f->step->space, e->arg[0]));
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) note_loads(f, e->arg[k]);
}

static cu_range times(ir_dim stride, cu_range s)
{
    if (s.unit == 0 && s.low == 0 && s.high == 0) return s;
    if (ir_dim_is_number(stride)) return cu_range_scale(s, stride.offset);
    return cu_range_between(INT64_MIN, INT64_MAX);
}

static cu_range offset_span(ir_dim offset)
{
    return ir_dim_is_number(offset) ? cu_range_constant(offset.offset) : cu_range_between(INT64_MIN, INT64_MAX);
}

static cu_range columns_span(int64_t count)
{
    return cu_range_between(0, count > 0 ? count - 1 : 0);
}

static void note_matrix(finder *f, const pl_matrix *m, bool is_written, cu_range columns)
{
    cu_range row = times(m->row_stride, f->step->space.loop[0]);
    note(f, m->buffer, is_written, cu_range_add(cu_range_add(offset_span(m->offset), row), columns));
}

static void note_heads(finder *f, const pl_heads *h, bool is_written, cu_range batch, int64_t heads, cu_range rows,
                       int64_t dim)
{
    cu_range at = cu_range_add(offset_span(h->offset), times(h->batch_stride, batch));
    at = cu_range_add(at, times(h->head_stride, columns_span(heads)));
    at = cu_range_add(at, times(h->row_stride, rows));
    note(f, h->buffer, is_written, cu_range_add(at, columns_span(dim)));
}

static cu_range extent_span(ir_dim extent, int64_t max_length)
{
    int64_t most = extent.scale > 0 ? ir_dim_at(extent, max_length) : ir_dim_at(extent, 1);
    return columns_span(most);
}

static void note_accesses(finder *f)
{
    cu_step *s = f->step;
    const pl_kernel *k = s->kernel;
    s->access_count = 0;
    switch (k->kind) {
    case PL_LINEAR:
        note_matrix(f, &k->linear.a, false, columns_span(k->linear.k));
        note_loads(f, k->linear.epilogue);
        note_matrix(f, &k->linear.out, true, s->space.loop[1]);
        break;
    case PL_NORM:
        note_loads(f, k->norm.input);
        note_loads(f, k->norm.epilogue);
        note_matrix(f, &k->norm.out, true, s->space.loop[1]);
        note_matrix(f, &k->norm.sum, true, s->space.loop[1]);
        break;
    case PL_ATTENTION: {
        const pl_attention *a = &k->attention;
        cu_range batch = s->space.loop[0], query = s->space.loop[1], key = s->space.loop[2];
        note_heads(f, &a->q, false, batch, a->heads, query, a->dim);
        note_heads(f, &a->k, false, batch, a->kv_heads, key, a->dim);
        note_heads(f, &a->v, false, batch, a->kv_heads, key, a->value_dim);
        note_heads(f, &a->out, true, batch, a->heads, query, a->value_dim);
        cu_range mask = cu_range_add(times(a->mask_batch, batch), times(a->mask_head, columns_span(a->heads)));
        note(f, a->mask, false, cu_range_add(cu_range_add(mask, times(a->mask_query, query)), key));
        break;
    }
    case PL_NEST:
        note_loads(f, k->nest.body);
        for (int i = 0; i < k->nest.store_count; i++) {
            const pl_store *store = &k->nest.store[i];
            note_loads(f, store->index);
            note_loads(f, store->value);
            note(f, store->buffer, true, cu_range_of(&s->space, store->index));
        }
        break;
    case PL_SEQUENTIAL:
    case PL_RECURRENCE:
        break;
    }
}

static bool writes_locally(const cu_step *s)
{
    for (int k = 0; k < s->access_count; k++)
        if (s->accesses[k].is_written && !s->accesses[k].is_local) return false;
    return true;
}

/* ---- Spreads ----------------------------------------------------------------------------------------------------- */

static bool is_units(ir_dim d)
{
    return d.scale > 0 && d.offset == 0;
}

/* Marks that loop `loop`, of extent scale * L, runs over the units. */
static void tile_loop(finder *f, int loop, ir_dim extent)
{
    cu_step *s = f->step;
    s->spread = CU_TILED;
    s->scale = extent.scale;
    s->space.loop[loop] = (cu_range){extent.scale, 0, extent.scale - 1};
}

static void describe_rows(finder *f, ir_dim rows, ir_dim columns)
{
    cu_step *s = f->step;
    int64_t longest = f->stages->plan->max_length;
    s->loop = 0;
    s->space.loop_count = 2;
    s->space.loop[0] = extent_span(rows, longest);
    s->space.loop[1] = extent_span(columns, longest);
    if (is_units(rows)) tile_loop(f, 0, rows);
    note_accesses(f);
    if (s->spread == CU_TILED && writes_locally(s)) return;
    bool is_small = ir_dim_is_number(rows) && rows.offset < FEWEST_FREE_ROWS;
    s->spread = is_small ? CU_SINGLE : CU_FREE;
    s->scale = is_small ? rows.offset : 1;
    s->space.loop[0] = extent_span(rows, longest);
    note_accesses(f);
}

static void describe_attention(finder *f, const pl_attention *a)
{
    cu_step *s = f->step;
    const ir_dim extents[] = {a->batch, a->queries, a->keys};
    s->space.loop_count = 3;
    for (int k = 0; k < 3; k++) s->space.loop[k] = extent_span(extents[k], f->stages->plan->max_length);
    if (ir_dim_is(a->batch, 1) && is_units(a->queries)) tile_loop(f, s->loop = 1, a->queries);
    if (is_units(a->batch) && ir_dim_is_number(a->queries)) tile_loop(f, s->loop = 0, a->batch);
    note_accesses(f);
    if (s->spread == CU_TILED && writes_locally(s)) return;
    bool is_small = ir_dim_is_number(a->batch) && ir_dim_is_number(a->queries) &&
                    a->batch.offset * a->queries.offset < FEWEST_FREE_ROWS;
    s->spread = is_small ? CU_SINGLE : CU_FREE;
    s->loop = -1;
    s->scale = 1;
    for (int k = 0; k < 3; k++) s->space.loop[k] = extent_span(extents[k], f->stages->plan->max_length);
    note_accesses(f);
}

/* Number of points of the outer loops; -1 if it depends on the length. */
static int64_t count_points(const pl_nest *n)
{
    int64_t points = 1;
    for (int k = 0; k < n->loop_count; k++)
        if (!ir_dim_is_number(n->extent[k]) || __builtin_mul_overflow(points, n->extent[k].offset, &points)) return -1;
    return points;
}

static void reset_nest(finder *f, const pl_nest *n)
{
    cu_step *s = f->step;
    s->space.loop_count = n->loop_count + n->reduce_count;
    for (int k = 0; k < s->space.loop_count; k++)
        s->space.loop[k] = extent_span(n->extent[k], f->stages->plan->max_length);
    s->loop = -1;
    s->scale = 1;
    s->spread = CU_FREE;
}

static void describe_nest(finder *f, const pl_nest *n)
{
    cu_step *s = f->step;
    for (int k = 0; k < n->loop_count; k++) {
        reset_nest(f, n);
        if (!is_units(n->extent[k])) continue;
        tile_loop(f, s->loop = k, n->extent[k]);
        note_accesses(f);
        if (writes_locally(s)) return;
    }
    reset_nest(f, n);
    int64_t points = count_points(n);
    if (points >= 0 && points < FEWEST_FREE_POINTS) s->spread = CU_SINGLE;
    note_accesses(f);
}

/* The reduction loop that can run tile by tile; -1 if there is none. */
static int partial_loop(const pl_nest *n)
{
    int64_t points = count_points(n);
    if (n->reducer < PL_REDUCE_SUM || n->reducer > PL_REDUCE_MIN) return -1;
    if (points < 0 || points > MOST_PARTIAL_POINTS) return -1;
    int found = -1;
    for (int k = n->loop_count; k < n->loop_count + n->reduce_count; k++) {
        if (ir_dim_is_number(n->extent[k])) continue;
        if (found >= 0 || !is_units(n->extent[k])) return -1;
        found = k;
    }
    return found;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static cu_step *add_step(finder *f, const pl_kernel *kernel, cu_part part)
{
    cu_stages *stages = f->stages;
    int most = 4 + 3 * PL_MAX_STORES + stages->plan->buffer_count;
    cu_step *s = &stages->steps[stages->step_count];
    *s = (cu_step){.kernel = kernel, .part = part, .spread = CU_SINGLE, .scale = 1, .loop = -1};
    s->space.max_length = stages->plan->max_length;
    s->accesses = IR_NEW_ARRAY(f->arena, cu_access, most);
    if (s->accesses == NULL) return NULL;
    stages->step_count++;
    f->step = s;
    return s;
}

/* Adds a buffer for the partial results of all tiles. */
static int add_partials(finder *f, const pl_kernel *kernel)
{
    cu_stages *stages = f->stages;
    int64_t tiles = (stages->plan->max_length + stages->schedule->tile_units - 1) / stages->schedule->tile_units;
    int64_t points = count_points(&kernel->nest);
    mdot_dtype dtype = kernel->nest.body->dtype;
    int number = stages->buffer_count++;
    f->buffers[number] = (pl_buffer){.kind = PL_SCRATCH,
                                     .name = ir_arena_printf(f->arena, "%s partial", kernel->name),
                                     .type = {.dtype = dtype, .rank = 2},
                                     .max_bytes = tiles * points * (int64_t)mdot_dtype_size_bytes(dtype)};
    f->buffers[number].type.dim[0] = ir_dim_number(tiles);
    f->buffers[number].type.dim[1] = ir_dim_number(points);
    return number;
}

static bool add_reduction(finder *f, const pl_kernel *kernel, int loop)
{
    const pl_nest *n = &kernel->nest;
    int partials = add_partials(f, kernel);
    cu_step *first = add_step(f, kernel, CU_PARTIAL);
    if (first == NULL || f->buffers[partials].name == NULL) return false;
    reset_nest(f, n);
    tile_loop(f, first->loop = loop, n->extent[loop]);
    note_loads(f, n->body);
    first->accesses[first->access_count++] = (cu_access){partials, true, true};
    cu_step *second = add_step(f, kernel, CU_FINISH);
    if (second == NULL) return false;
    reset_nest(f, n);
    second->spread = CU_SINGLE;
    second->accesses[second->access_count++] = (cu_access){partials, false, false};
    for (int k = 0; k < n->store_count; k++) {
        note_loads(f, n->store[k].index);
        note_loads(f, n->store[k].value);
        note(f, n->store[k].buffer, true, cu_range_of(&second->space, n->store[k].index));
    }
    return true;
}

static mdot_status add_kernel(finder *f, const pl_kernel *kernel, mdot_error *err)
{
    int loop = kernel->kind == PL_NEST ? partial_loop(&kernel->nest) : -1;
    bool there_is_room = loop >= 0 ? add_reduction(f, kernel, loop) : add_step(f, kernel, CU_WHOLE) != NULL;
    if (!there_is_room) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    if (loop >= 0) return MDOT_OK;
    switch (kernel->kind) {
    case PL_LINEAR:
        describe_rows(f, kernel->linear.rows, ir_dim_number(kernel->linear.columns));
        return MDOT_OK;
    case PL_NORM:
        describe_rows(f, kernel->norm.rows, kernel->norm.columns);
        return MDOT_OK;
    case PL_ATTENTION:
        describe_attention(f, &kernel->attention);
        return MDOT_OK;
    case PL_NEST:
        describe_nest(f, &kernel->nest);
        return MDOT_OK;
    case PL_SEQUENTIAL:
    case PL_RECURRENCE:
        break;
    }
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "kernel %s (%s): sorting, scans, scatters and recurrences have no CUDA code", kernel->name,
                     kernel->origin);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* The largest buffer for which `after` must wait until all blocks have finished `before`; -1 if there is none.
 * `related`: both touch a common buffer and at least one writes it, so that their order matters. */
static int conflict(const cu_stages *stages, const cu_step *before, const cu_step *after, bool *related)
{
    int found = -1;
    int64_t most = -1;
    *related = false;
    for (int i = 0; i < before->access_count; i++) {
        const cu_access *a = &before->accesses[i];
        for (int j = 0; j < after->access_count; j++) {
            const cu_access *b = &after->accesses[j];
            if (a->buffer != b->buffer || (!a->is_written && !b->is_written)) continue;
            *related = true;
            bool crosses = before->spread != after->spread || !a->is_local || !b->is_local;
            int64_t size = cu_elements_per_unit(&stages->buffers[a->buffer].type);
            if (!crosses || size <= most) continue;
            found = a->buffer;
            most = size;
        }
    }
    return found;
}

static void rise(cu_stages *stages)
{
    for (int j = 0; j < stages->step_count; j++) {
        cu_step *after = &stages->steps[j];
        for (int i = 0; i < j; i++) {
            bool related;
            int earliest = stages->steps[i].stage + (conflict(stages, &stages->steps[i], after, &related) >= 0);
            if (related && earliest > after->stage) after->stage = earliest;
        }
        if (after->stage >= stages->stage_count) stages->stage_count = after->stage + 1;
    }
}

static void sink(cu_stages *stages)
{
    for (int i = stages->step_count - 1; i >= 0; i--) {
        cu_step *before = &stages->steps[i];
        int latest = INT_MAX;
        for (int j = i + 1; j < stages->step_count; j++) {
            bool related;
            int limit = stages->steps[j].stage - (conflict(stages, before, &stages->steps[j], &related) >= 0);
            if (related && limit < latest) latest = limit;
        }
        if (latest != INT_MAX) before->stage = latest;
    }
}

static int compare_steps(const void *left, const void *right)
{
    const cu_step *a = left, *b = right;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->spread != b->spread) return a->spread < b->spread ? -1 : 1;
    if (a->kernel != b->kernel) return a->kernel < b->kernel ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part;
}

/* Of several reasons for a barrier, records the one with the most data. */
static void explain_barriers(cu_stages *stages)
{
    for (int j = 0; j < stages->step_count; j++) {
        const cu_step *after = &stages->steps[j];
        cu_barrier *barrier = &stages->barriers[after->stage];
        for (int i = 0; i < j; i++) {
            bool related;
            int buffer = conflict(stages, &stages->steps[i], after, &related);
            if (stages->steps[i].stage != after->stage - 1 || buffer < 0) continue;
            if (barrier->before != NULL && cu_elements_per_unit(&stages->buffers[buffer].type) <=
                                               cu_elements_per_unit(&stages->buffers[barrier->buffer].type))
                continue;
            *barrier = (cu_barrier){&stages->steps[i], after, buffer};
        }
    }
    for (int j = 0; j < stages->step_count; j++) {
        const cu_step *s = &stages->steps[j];
        for (int k = 0; k < s->access_count; k++) {
            const cu_access *a = &s->accesses[k];
            bool is_output = stages->buffers[a->buffer].kind == PL_OUTPUT && a->is_written;
            if (is_output && s->spread != CU_SINGLE && s->stage == stages->stage_count - 1) stages->meets_at_end = true;
        }
    }
}

mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err)
{
    cu_stages stages = {.plan = plan, .schedule = schedule, .buffer_count = plan->buffer_count, .stage_count = 1};
    finder f = {.stages = &stages, .arena = arena};
    f.buffers = IR_NEW_ARRAY(arena, pl_buffer, plan->buffer_count + plan->kernel_count + 1);
    stages.buffers = f.buffers;
    stages.steps = IR_NEW_ARRAY(arena, cu_step, 2 * plan->kernel_count + 1);
    if (f.buffers == NULL || stages.steps == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (int k = 0; k < plan->buffer_count; k++) f.buffers[k] = plan->buffers[k];
    for (int k = 0; k < plan->kernel_count; k++) {
        mdot_status status = add_kernel(&f, &plan->kernels[k], err);
        if (status != MDOT_OK) return status;
    }
    rise(&stages);
    sink(&stages);
    qsort(stages.steps, (size_t)stages.step_count, sizeof *stages.steps, compare_steps);
    stages.barriers = IR_NEW_ARRAY(arena, cu_barrier, stages.stage_count + 1);
    if (stages.barriers == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    explain_barriers(&stages);
    *out_stages = stages;
    return MDOT_OK;
}
