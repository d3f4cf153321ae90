/* cuda_step.h — the function that does a step, while it is being written.
 *
 * It takes the units to work on and the places of its buffers, so that layers and buckets that differ in nothing else
 * share one. Its text is written with these names in scope:
 *
 *   t            the tile: first unit, count of units, run-time length
 *   i0, i1, …    the step's loop variables, over the whole tensor
 *   r            the tiled loop's variable, counted from the tile's first
 */
#ifndef CU_STEP_H
#define CU_STEP_H

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

enum { CU_ROWS = 16 /* of a matrix instruction */, CU_WARP = 32 /* threads */, CU_WEIGHT_ALIGNMENT = 256 };

typedef struct cu_parameter {
    char key[32]; /* the place that it stands for */
    char name[24];
} cu_parameter;

enum { CU_MAX_PARAMETERS = 64 };

typedef struct cu_function {
    const cu_layout *layout;
    const cu_step *step;
    int number; /* the step's */
    bool meets; /* a __syncthreads must stand before what it reads of earlier steps; cu_meet_first */
    cg_pool *weights;
    ir_arena *arena;
    mdot_error *err;
    mdot_status status;
    cu_text declarations, arguments; /* behind the tile, ", " before each */
    cu_text locals, body;
    cu_parameter parameters[CU_MAX_PARAMETERS];
    int parameter_count, printed_nodes;
} cu_function;

static inline const pl_buffer *cu_buffer(const cu_function *f, int buffer)
{
    return &f->layout->stages->buffers[buffer];
}
static inline const cu_placement *cu_placement_of(const cu_function *f, int buffer)
{
    return &f->layout->homes[buffer];
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

/* UNSUPPORTED, naming the kernel; the first counts. */
void cu_refuse(cu_function *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name of a pointer to the start of a place, a parameter that is called `wanted` where it is new. */
const char *cu_pointer(cu_function *f, int buffer, const cu_place *place, const char *wanted);
/* A pointer into the weights, at bytes that are added now (shared with equal ones). `type` is of the elements. */
const char *cu_weight_pointer(cu_function *f, const char *wanted, const char *type, const void *bytes,
                              size_t size_bytes);
/* The start of the step's own shared memory, as `type *name`. */
void cu_work_pointer(cu_function *f, const char *type, const char *name);
/* Puts the __syncthreads that the step needs, once: in the function, behind loads that need not wait for it. A step
 * that doesn't call this has it in front of its call. */
void cu_meet_first(cu_function *f, const char *condition);
const char *cu_dim_text(cu_function *f, ir_dim d); /* "3 * t.length + 1" */
const char *cu_type_name(mdot_dtype dtype);        /* NULL: no CUDA code handles it */
/* What a place is called in the kernel. */
const char *cu_place_name(const cu_layout *layout, ir_arena *arena, int buffer, const cu_place *place);

#endif
