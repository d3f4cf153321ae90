/* kernel_kind.h — the table of functions of each kernel kind, and the functions that call it.
 *
 * The table is the only part of the planner that differs between kinds. All other code calls the functions below, or
 * the table's own functions, and refers to no kind. Each kind has a file kind_<name>.c, whose functions visit, print
 * and verify its kernels.
 */
#pragma once

#include "plan/plan.h"

#include <stdio.h>

struct pl_checker; /* kind_tools.h */
struct pl_units;   /* kind_tools.h */

/* Receives the buffers that a kernel accesses. */
typedef struct pl_visitor {
    void (*visit)(void *user, int buffer, bool is_written);
    /* Receives the factors of products, which a matrix kernel rounds. NULL: `visit` receives them as reads. */
    void (*visit_factor)(void *user, int buffer);
    void *user;
} pl_visitor;

typedef struct pl_kind_ops {
    /* Passes each occurrence of a buffer to the visitor, in a fixed order. */
    void (*visit)(const pl_kernel *kernel, const pl_visitor *visitor);
    void (*print)(const pl_kernel *kernel, FILE *text);
    void (*verify)(const pl_kernel *kernel, struct pl_checker *checker);
    /* The three properties below; NULL: no kernel of the kind has the property. */
    bool (*is_matrix)(const pl_kernel *kernel, const pl_plan *plan);
    bool (*is_rowwise)(const pl_kernel *kernel, struct pl_units *units); /* pl_kernel.is_rowwise; sets units->offset */
    bool (*is_split)(const pl_kernel *kernel, const pl_plan *plan);
    bool updates_outputs; /* a kernel may read old output content, for example a scatter that adds */
} pl_kind_ops;

#define PL_KERNEL_KIND(identifier, name) extern const pl_kind_ops pl_##name##_kind;
#include "plan/kernel_kinds.def"

extern const pl_kind_ops *const pl_kinds[PL_KIND_COUNT]; /* indexed by pl_kind */

const char *pl_kind_name(pl_kind kind); /* for example "linear" */

/* Calls `visit` for every buffer that a kernel reads or writes, once per occurrence. */
void pl_kernel_visit_buffers(const pl_kernel *kernel, void (*visit)(void *user, int buffer, bool is_written),
                             void *user);

/* Does a kernel multiply 16-bit factors, with f32 sums, in images with 16-bit precision? The factors are `a` and a
 * linear's weight, and q, k, v and the softmax weights of attention. */
bool pl_is_matrix(const pl_plan *plan, const pl_kernel *kernel);

/* Can calls divide a kernel's work among themselves (mdot_abi_call)? Only the plan decides, so the answer is the same
 * for every image. */
bool pl_is_split(const pl_plan *plan, const pl_kernel *kernel);

/* Is a loop of this extent worth dividing among calls? A loop whose extent follows the length always is. */
static inline bool pl_is_split_extent(ir_dim extent)
{
    enum { FEWEST_UNITS = 64 };
    return !ir_dim_is_number(extent) || extent.offset >= FEWEST_UNITS;
}

/* ---- kind_linear.c: the rule for dividing linear kernels among calls, and linears with 3x3 windows --------------- */

/* A linear with a constant number of rows is divided among calls if it has more rows than this. */
enum { PL_LINEAR_UNSPLIT_ROWS = 96 };

/* 3x3 windows of images that move by one position or two: the element at position (y, x), tap (i, j) and channel c is
 * at (step * y + i) * y_stride + (step * x + j) * x_stride + c from the image's first element. */
typedef struct pl_taps {
    int64_t height, width; /* positions of an image, both even */
    int64_t channels;      /* of a tap */
    int64_t step;
    int64_t y_stride, x_stride;
    ir_dim image_stride;
} pl_taps;

/* Does the linear have such windows, with sizes for which the transform of codegen/cpu/cpu_linear_winograd.c is faster
 * than a sum over all taps? */
bool pl_taps_of(const pl_linear *k, pl_taps *out);

/* ---- kind_nest.c: the rule for dividing loop nests among calls --------------------------------------------------- */

/* The loop that is divided among calls: the outermost output loop that is worth it; -1 if there is none. */
int pl_nest_split_loop(const pl_nest *k);
