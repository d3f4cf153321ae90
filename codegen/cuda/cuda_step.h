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
#ifndef CU_STEP_H
#define CU_STEP_H

#include "codegen/byte_pool.h"
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
    int number;         /* number of the step */
    bool needs_barrier; /* a __syncthreads must precede its reads of earlier steps' results; cu_sync_first */
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
static inline const cu_schedule *cu_schedule_of(const cu_function *f)
{
    return f->layout->stages->schedule;
}
static inline int cu_threads(const cu_function *f)
{
    return cu_schedule_of(f)->threads;
}
static inline int cu_warps(const cu_function *f)
{
    return cu_threads(f) / CU_WARP;
}

/* Records UNSUPPORTED with the kernel's name. The first refusal counts. */
void cu_refuse(cu_function *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name of a pointer to the start of a location. `name_hint` is the name of a new parameter, followed by a number if
 * it is taken. */
const char *cu_pointer(cu_function *f, int buffer, const cu_location *location, const char *name_hint);
/* A pointer into the weights, to bytes that are added now (or shared with equal ones). `type` is the element type. */
const char *cu_weight_pointer(cu_function *f, const char *name_hint, const char *type, const void *bytes,
                              size_t size_bytes);
/* Declares the start of the step's own shared memory as `type *name`. */
void cu_work_pointer(cu_function *f, const char *type, const char *name);
/* Prints the step's __syncthreads, once, inside the function, after loads that are independent of it. For a step
 * that skips this call, it precedes the step's call. */
void cu_sync_first(cu_function *f, const char *condition);
const char *cu_dim_text(cu_function *f, ir_dim d); /* for example "3 * t.length + 1" */
/* The product of dimensions from … to - 1 of a type. */
const char *cu_product_text(cu_function *f, const ir_type *type, int from, int to);
const char *cu_type_name(mdot_dtype dtype); /* NULL if CUDA code does not support the type */
/* The name of a location in the kernel. */
const char *cu_location_name(const cu_layout *layout, ir_arena *arena, int buffer, const cu_location *location);

#endif
