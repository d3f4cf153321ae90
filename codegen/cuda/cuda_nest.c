/* cuda_nest.c — general loop nests: a thread takes one point of the outer loops and runs the whole reduction.
 *
 * A reduction over the length is split into two steps (cuda_stages.h): the first reduces each tile to a partial result,
 * and the second combines the partial results.
 */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_text.h"

#include <inttypes.h>

/* A loop's extent; the tile's if the loop runs over units. */
static const char *extent_text(cu_function *f, int loop)
{
    const cu_step *s = f->step;
    if (loop == s->loop) return ir_arena_printf(f->arena, "(t.count * %" PRId64 ")", s->scale);
    return cu_dim_text(f, s->kernel->nest.extent[loop]);
}

/* Declares a loop's variable; `source` is its value counted from the loop's beginning. */
static void put_variable(cu_function *f, int loop, const char *source, const char *indent)
{
    const cu_step *s = f->step;
    if (loop == s->loop)
        cu_put(&f->body, "%sconst int r = %s, i%d = t.first * %" PRId64 " + r;\n", indent, source, loop, s->scale);
    else
        cu_put(&f->body, "%sconst int i%d = %s;\n", indent, loop, source);
}

/* Splits `point` into the outer loops' variables. The last loop varies fastest, so neighbouring threads access
 * neighbouring elements. */
static void put_point(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    const char *rest = "point";
    for (int k = n->loop_count - 1; k >= 0; k--) {
        const char *extent = extent_text(f, k);
        put_variable(f, k, k > 0 ? ir_arena_printf(f->arena, "%s %% %s", rest, extent) : rest, "        ");
        if (k > 0) rest = ir_arena_printf(f->arena, "%s / %s", rest, extent);
    }
}

static const char *neutral(pl_reducer reducer, mdot_dtype dtype)
{
    bool is_float = dtype == MDOT_DTYPE_F32, is_wide = dtype == MDOT_DTYPE_I64;
    switch (reducer) {
    case PL_REDUCE_SUM: return "0";
    case PL_REDUCE_PROD: return "1";
    case PL_REDUCE_MAX:
        if (dtype == MDOT_DTYPE_BOOL) return "false";
        return is_float ? "-INFINITE" : is_wide ? "(-9223372036854775807LL - 1)" : "(-2147483647 - 1)";
    default:
        if (dtype == MDOT_DTYPE_BOOL) return "true";
        return is_float ? "INFINITE" : is_wide ? "9223372036854775807LL" : "2147483647";
    }
}

static const char *combined(cu_function *f, pl_reducer reducer, mdot_dtype dtype, const char *x)
{
    bool is_float = dtype == MDOT_DTYPE_F32;
    switch (reducer) {
    case PL_REDUCE_SUM: return ir_arena_printf(f->arena, is_float ? "acc + %s" : "wrap_add(acc, %s)", x);
    case PL_REDUCE_PROD: return ir_arena_printf(f->arena, is_float ? "acc * %s" : "wrap_mul(acc, %s)", x);
    case PL_REDUCE_MAX: return ir_arena_printf(f->arena, "largest(acc, %s)", x);
    default: return ir_arena_printf(f->arena, "least(acc, %s)", x);
    }
}

static void put_position_step(cu_function *f, pl_reducer reducer, const char *type, const char *x)
{
    bool minimum = reducer == PL_REDUCE_ARGMIN_FIRST || reducer == PL_REDUCE_ARGMIN_LAST;
    bool is_last = reducer == PL_REDUCE_ARGMAX_LAST || reducer == PL_REDUCE_ARGMIN_LAST;
    /* A NaN is more extreme than every number and equal to other NaNs. */
    static const char *const replaces[2][2] = {{"best == best && !(x <= best)", "x != x || best <= x"},
                                               {"best == best && !(best <= x)", "x != x || x <= best"}};
    cu_put(&f->body,
           "            const %s x = %s;\n"
           "            if (position == 0 || %s) {\n"
           "                best = x;\n"
           "                acc = position;\n"
           "            }\n"
           "            position++;\n",
           type, x, replaces[minimum][is_last]);
}

/* Declares `acc` and reduces the body into it. */
static void put_reduction(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    mdot_dtype dtype = n->body->dtype;
    bool is_position = n->reducer >= PL_REDUCE_ARGMAX_FIRST;
    if (!cu_check_types(f, n->body)) return;
    const char *type = cu_type_name(dtype);
    if (type == NULL) return;
    if (is_position)
        cu_put(&f->body, "        long long acc = 0, position = 0;\n        %s best = 0;\n", type);
    else
        cu_put(&f->body, "        %s acc = %s;\n", type, neutral(n->reducer, dtype));
    for (int k = n->loop_count; k < n->loop_count + n->reduce_count; k++) {
        cu_put(&f->body, "        for (int n%d = 0; n%d < %s; n%d++) {\n", k, k, extent_text(f, k), k);
        put_variable(f, k, ir_arena_printf(f->arena, "n%d", k), "            ");
    }
    const char *x = cu_typed_expression(f, n->body, "");
    if (is_position)
        put_position_step(f, n->reducer, type, x);
    else
        cu_put(&f->body, "            acc = %s;\n", combined(f, n->reducer, dtype, x));
    for (int k = 0; k < n->reduce_count; k++) cu_put(&f->body, "        }\n");
}

static const char *points_text(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    const char *points = NULL;
    for (int k = 0; k < n->loop_count; k++)
        points = points != NULL ? ir_arena_printf(f->arena, "%s * %s", points, extent_text(f, k)) : extent_text(f, k);
    return points != NULL ? points : "1";
}

/* The buffer of partial results: the only access outside the plan's buffers. */
static int partials_of(const cu_function *f)
{
    for (int k = 0; k < f->step->access_count; k++)
        if (f->step->accesses[k].buffer >= f->layout->stages->plan->buffer_count) return f->step->accesses[k].buffer;
    return -1;
}

static void put_stores(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    for (int s = 0; s < n->store_count; s++) {
        const char *type = cu_type_name(cu_buffer(f, n->store[s].buffer)->type.dtype);
        if (type == NULL) {
            cu_refuse(f, "CUDA code does not support values of type %s",
                      mdot_dtype_name(cu_buffer(f, n->store[s].buffer)->type.dtype));
            return;
        }
        cu_put(&f->body, "        const %s value%d = %s;\n", type, s, cu_expression(f, n->store[s].value, "acc"));
    }
    for (int s = 0; s < n->store_count; s++)
        cu_store(f, n->store[s].buffer, n->store[s].index, ir_arena_printf(f->arena, "value%d", s), "        ");
}

static void put_partial_results(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    const char *points = points_text(f);
    int partials = partials_of(f);
    int tile = cu_schedule_of(f)->tile_units;
    const cu_location *location = &cu_placement_of(f, partials)->plain;
    const char *memory = cu_pointer(f, partials, location, "partial");
    if (f->step->part == CU_PARTIAL) {
        put_reduction(f);
        const char *element = ir_arena_printf(f->arena, "%s[t.first / %d * (%s) + point]", memory, tile, points);
        cu_put(&f->body, "%s", cu_store_text(f, location, element, "", " = acc", "        "));
        return;
    }
    mdot_dtype dtype = n->body->dtype;
    const char *type = cu_type_name(dtype);
    if (type == NULL) return; /* already refused with the partial results */
    cu_put(&f->body,
           "        %s acc = %s;\n"
           "#pragma unroll 8\n"
           "        for (int tile = 0; tile < (t.length + %d) / %d; tile++) {\n"
           "            acc = %s;\n"
           "        }\n",
           type, neutral(n->reducer, dtype), tile - 1, tile,
           combined(f, n->reducer, dtype, ir_arena_printf(f->arena, "%s[tile * (%s) + point]", memory, points)));
    put_stores(f);
}

static void emit(cu_function *f)
{
    const pl_nest *n = &f->step->kernel->nest;
    if (n->body != NULL && !cu_check_types(f, n->body)) return;
    if (f->step->distribution == CU_FREE)
        cu_schedule_of(f)->put_all_points(cu_schedule_of(f), &f->body, points_text(f));
    else
        cu_schedule_of(f)->put_tile_points(cu_schedule_of(f), &f->body, points_text(f));
    put_point(f);
    if (f->step->part == CU_WHOLE) {
        if (n->body != NULL) put_reduction(f);
        put_stores(f);
    } else {
        put_partial_results(f);
    }
    cu_put(&f->body, "    }\n");
}

/* A reduction of the length to more results than this runs whole in one block. */
enum { MAX_PARTIAL_POINTS = 4096 };

static void note_stores(cu_step_finder *f, const pl_nest *n)
{
    for (int i = 0; i < n->store_count; i++) {
        const pl_store *store = &n->store[i];
        cu_note_loads(f, store->index);
        cu_note_loads(f, store->value);
        cu_note_access(f, store->buffer, true, cu_range_of(&f->step->space, store->index));
    }
}

static void note_accesses(cu_step_finder *f)
{
    f->step->access_count = 0;
    cu_note_loads(f, f->step->kernel->nest.body);
    note_stores(f, &f->step->kernel->nest);
}

/* Points in the outer loops; -1 if the count depends on the length. */
static int64_t count_points(const pl_nest *n)
{
    int64_t points = 1;
    for (int k = 0; k < n->loop_count; k++)
        if (!ir_dim_is_number(n->extent[k]) || __builtin_mul_overflow(points, n->extent[k].offset, &points)) return -1;
    return points;
}

static void reset_nest(cu_step_finder *f, const pl_nest *n)
{
    cu_step *s = f->step;
    s->space.loop_count = n->loop_count + n->reduce_count;
    for (int k = 0; k < s->space.loop_count; k++)
        s->space.loop[k] = cu_extent_range(n->extent[k], f->stages->plan->max_length);
    s->loop = -1;
    s->scale = 1;
    s->distribution = CU_FREE;
}

static void distribution(cu_step_finder *f, const pl_nest *n)
{
    cu_step *s = f->step;
    for (int k = 0; k < n->loop_count; k++) {
        reset_nest(f, n);
        if (!cu_is_units(n->extent[k]) || f->is_one_block) continue;
        cu_tile_loop(f, s->loop = k, n->extent[k]);
        note_accesses(f);
        if (cu_writes_locally(s)) return;
    }
    reset_nest(f, n);
    int64_t points = count_points(n);
    if (f->is_one_block || (points >= 0 && points < CU_MIN_FREE_POINTS)) s->distribution = CU_SINGLE;
    note_accesses(f);
}

/* The reduction loop that can run tile by tile; -1 if there is none. */
static int partial_loop(const pl_nest *n)
{
    int64_t points = count_points(n);
    if (n->reducer < PL_REDUCE_SUM || n->reducer > PL_REDUCE_MIN) return -1;
    if (points < 0 || points > MAX_PARTIAL_POINTS) return -1;
    int found = -1;
    for (int k = n->loop_count; k < n->loop_count + n->reduce_count; k++) {
        if (ir_dim_is_number(n->extent[k])) continue;
        if (found >= 0 || !cu_is_units(n->extent[k])) return -1;
        found = k;
    }
    return found;
}

/* Adds a buffer for the partial results of all tiles. */
static int add_partials(cu_step_finder *f, const pl_kernel *kernel)
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

static bool add_reduction(cu_step_finder *f, const pl_kernel *kernel, int loop)
{
    const pl_nest *n = &kernel->nest;
    int partials = add_partials(f, kernel);
    cu_step *first = cu_add_step(f, kernel, CU_PARTIAL);
    if (first == NULL || f->buffers[partials].name == NULL) return false;
    reset_nest(f, n);
    cu_tile_loop(f, first->loop = loop, n->extent[loop]);
    cu_note_loads(f, n->body);
    first->accesses[first->access_count++] = (cu_access){partials, true, true};
    cu_step *second = cu_add_step(f, kernel, CU_FINISH);
    if (second == NULL) return false;
    reset_nest(f, n);
    second->distribution = CU_SINGLE;
    second->accesses[second->access_count++] = (cu_access){partials, false, false};
    note_stores(f, n);
    return true;
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    int loop = f->is_one_block ? -1 : partial_loop(&kernel->nest);
    if (loop >= 0) return add_reduction(f, kernel, loop);
    if (cu_add_step(f, kernel, CU_WHOLE) == NULL) return false;
    distribution(f, &kernel->nest);
    return true;
}

const cu_step_kind cu_nest_kind = {
    .find_steps = find_steps,
    .emit = emit,
};
