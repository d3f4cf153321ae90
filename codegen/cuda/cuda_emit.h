/* cuda_emit.h — what the files that write a step share. Internal to codegen/cuda.
 *
 * A step becomes a device function that takes the units to work on and the places of its buffers, so that layers and
 * buckets that differ in nothing else share one. Its text is written with these names in scope:
 *
 *   t            the tile: first unit, count of units, run-time length
 *   i0, i1, …    the step's loop variables, over the whole tensor
 *   r            the tiled loop's variable, counted from the tile's first
 */
#ifndef CU_EMIT_H
#define CU_EMIT_H

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/places.h"

enum { CU_THREADS = 256, CU_WARPS = CU_THREADS / 32, CU_ROWS = 16 /* of a matrix instruction */ };

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
static inline const cu_home *cu_home_of(const cu_function *f, int buffer)
{
    return &f->layout->homes[buffer];
}
static inline bool cu_is_local(const cu_place *place)
{
    return place->kind == CU_SHARED;
}

/* UNSUPPORTED, naming the kernel; the first counts. */
void cu_refuse(cu_function *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- cuda_generate.c: parameters
 * -------------------------------------------------------------------------------------- */

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

/* ---- cuda_expr.c
 * ------------------------------------------------------------------------------------------------------ */

/* An expression's C text; `acc` is the text of ACC 0. Of I64, it is of type int where all its values fit that. */
const char *cu_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* The same, of the expression's own type whatever its values. */
const char *cu_typed_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* "name[index]" for one element, index being an expression over the loops. */
const char *cu_element(cu_function *f, int buffer, const cu_place *place, const pl_expr *index, const char *wanted);
/* Puts statements that store the value's text at index to all places of a buffer. */
void cu_store(cu_function *f, int buffer, const pl_expr *index, const char *value, const char *indent);
/* Index of element (row, column) of a matrix as an expression of loops 0 and 1. */
const pl_expr *cu_matrix_index(cu_function *f, const pl_matrix *matrix);
bool cu_check_types(cu_function *f, const pl_expr *expr);

/* ---- A file a kernel kind: puts the function's body ---------------------------------------------------------------
 */

void cu_emit_linear(cu_function *f);
void cu_emit_attention(cu_function *f);
void cu_emit_norm(cu_function *f);
void cu_emit_nest(cu_function *f);

/* ---- prelude.c, common.c ------------------------------------------------------------------------------------------
 */

extern const char cu_prelude[];          /* for the card */
extern const char cu_common[];           /* portable, for every mode */
extern const char cu_bf16[], cu_f16[];   /* the 16-bit type and its product … */
extern const char cu_halves[];           /* … and what follows from them */
extern const char cu_exact[], cu_fast[]; /* functions for f32 and for 16-bit modes */

#endif
