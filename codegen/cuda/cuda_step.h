/* cuda_step.h — the function of a step while it is being printed.
 *
 * Its parameters are the units to work on and the places of its buffers, so that layers and buckets that differ only
 * in these share one function. Its text may use these names:
 *
 *   t            the tile: first unit, count of units, run-time length
 *   i0, i1, …    the step's loop variables, over the whole tensor
 *   r            the tiled loop's variable, counted from the tile's first
 *   step         the step of the enclosing recurrence
 */
#pragma once

#include "codegen/byte_pool.h"
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

enum { CU_ROWS = 16 /* rows of a matrix instruction */, CU_WARP = 32 /* threads */, CU_WEIGHT_ALIGNMENT = 256 };

typedef struct cu_parameter {
    char key[32]; /* identifies the location that it stands for */
    char name[24];
} cu_parameter;

enum { CU_MAX_PARAMETERS = 64 };

typedef struct cu_function {
    const cu_layout *layout;
    const cu_step *step;
    int number;   /* number of the step */
    cu_wait wait; /* the barrier that must precede reads of earlier steps' results; cu_sync_first */
    cg_pool *weights;
    ir_arena *arena;
    mdot_error *err;
    mdot_status status;
    cu_text declarations, arguments; /* after the tile, each preceded by ", " */
    cu_text locals, body;
    cu_parameter parameters[CU_MAX_PARAMETERS];
    int parameter_count, printed_nodes;
    bool has_step; /* `step`, the step of the enclosing recurrence, is among the declarations */
} cu_function;

static inline const pl_buffer *cu_buffer(const cu_function *f, int buffer)
{
    return &f->layout->stages->buffers[buffer];
}
static inline const cu_placement *cu_placement_of(const cu_function *f, int buffer)
{
    return &f->layout->placements[buffer];
}
static inline const cu_schedule *cu_schedule_of(const cu_function *f) { return f->layout->stages->schedule; }
static inline int cu_threads(const cu_function *f) { return cu_schedule_of(f)->threads; }
static inline int cu_warps(const cu_function *f) { return cu_threads(f) / CU_WARP; }

/* Records UNSUPPORTED with the kernel's name. The first refusal counts. */
void cu_refuse(cu_function *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name of a location's start pointer. `name_hint` names a new parameter, followed by a number if it is taken. */
const char *cu_pointer(cu_function *f, int buffer, const cu_location *location, const char *name_hint);
/* A pointer into the weights, to bytes that are added now (or shared with equal ones). `type` is the element type. */
const char *cu_weight_pointer(cu_function *f, const char *name_hint, const char *type, const void *bytes,
                              size_t size_bytes);
/* Declares the start of the step's own shared memory as `type *name`. */
void cu_work_pointer(cu_function *f, const char *type, const char *name);
/* Prints the step's barrier, once, inside the function, after independent loads. For a step that skips this call,
 * it precedes the step's call. */
void cu_sync_first(cu_function *f, const char *condition);
/* The statement "before element after;" that stores an element. In a cluster, a split step stores in the shared memory
 * of all blocks, and the first block alone stores what all computed in global memory. */
const char *cu_store_text(cu_function *f, const cu_location *location, const char *element, const char *before,
                          const char *after, const char *indent);
const char *cu_dim_text(cu_function *f, ir_dim d); /* for example "3 * t.length + 1" */
/* The product of a type's dimensions from … to - 1. */
const char *cu_product_text(cu_function *f, const ir_type *type, int from, int to);
const char *cu_type_name(mdot_dtype dtype); /* NULL if CUDA code does not support the type */
/* The name of a location in the kernel. */
const char *cu_location_name(const cu_layout *layout, ir_arena *arena, int buffer, const cu_location *location);

/* ---- cuda_expr.c: scalar expressions as CUDA C, and elements of buffers in any memory space ---------------------- */

/* An expression's C text; `acc` is ACC 0's. An I64 expression has type int if all values fit. */
const char *cu_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* The same, always in the expression's own type. */
const char *cu_typed_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* "name[index]" for one element, where index is an expression over the loops. */
const char *cu_element(cu_function *f, int buffer, const cu_location *location, const pl_expr *index,
                       const char *name_hint);
/* Prints statements that store the value's text at `index` in all buffer locations. */
void cu_store(cu_function *f, int buffer, const pl_expr *index, const char *value, const char *indent);
/* The same for an index given as a sum's text, over the whole buffer; the element is the plain one. */
const char *cu_element_at(cu_function *f, int buffer, const char *index, const char *name_hint);
void cu_store_at(cu_function *f, int buffer, const char *index, const char *value, const char *indent);
/* A matrix element's index (row, column), as an expression of loops 0 and 1. */
const pl_expr *cu_matrix_index(cu_function *f, const pl_matrix *matrix);
bool cu_check_types(cu_function *f, const pl_expr *expr);

/* ---- cuda_axis.c: the lines of a tensor along an axis, for steps that go along them.
 *
 * A tensor is outer × extent × inner around its axis. A line has one outer and one inner index, and `extent` elements.
 * If the length is among the outer dimensions, a unit owns whole lines, and the step can be distributed by units.
 */

/* Texts for a step along a type's axis. */
typedef struct cu_axis {
    const char *extent, *inner;
    const char *outer_count; /* outer indices to work on: those of the tile, or all */
    const char *outer_start; /* the first of them */
} cu_axis;

cu_axis cu_axis_of(cu_function *f, const ir_type *type, int axis);

/* Tries to distribute a step along `axis` of `type` by units. Sets distribution and scale. */
bool cu_tile_outer(cu_step_finder *f, const ir_type *type, int axis);
/* Records an access to any elements in the step's lines. Buffer -1: none. */
void cu_note_lines(cu_step_finder *f, int buffer, bool is_written);

/* Element count of the dimensions from … to - 1; -1 if it follows the length. */
int64_t cu_fixed_count(const ir_type *type, int from, int to);

/* Opens a step's loop over `count` points: for all blocks, or one. */
void cu_put_points(cu_function *f, const char *count);

/* The C type of a buffer's elements. If CUDA code does not support it, the step is refused. */
const char *cu_checked_type(cu_function *f, int buffer);

/* ---- cuda_scatter.c: the scatters among the sequential kernels --------------------------------------------------- */

/* As cu_step_kind has them. */
bool cu_find_scatter(cu_step_finder *f, const pl_kernel *kernel);
void cu_emit_scatter(cu_function *f);
