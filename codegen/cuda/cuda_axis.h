/* cuda_axis.h — the lines of a tensor along an axis, for steps that go along them.
 *
 * A tensor is outer × extent × inner around its axis. A line has one outer and one inner index, and `extent` elements.
 * If the length is among the outer dimensions, a unit owns whole lines, and the step can be distributed by units.
 */
#ifndef CU_CUDA_AXIS_H
#define CU_CUDA_AXIS_H

#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/step_finder.h"

/* Texts of a step that goes along the axis of a type. */
typedef struct cu_axis {
    const char *extent, *inner;
    const char *outer_count; /* outer indices to work on: those of the tile, or all */
    const char *outer_start; /* the first of them */
} cu_axis;

cu_axis cu_axis_of(cu_function *f, const ir_type *type, int axis);

/* Tries to distribute the step by units, given that it goes along `axis` of `type`. Sets its distribution and scale. */
bool cu_tile_outer(cu_step_finder *f, const ir_type *type, int axis);
/* Records an access to any elements of the lines that the step works on. Buffer -1 means that there is none. */
void cu_note_lines(cu_step_finder *f, int buffer, bool is_written);

/* Number of elements of the dimensions from … to - 1; -1 if it follows the length. */
int64_t cu_fixed_count(const ir_type *type, int from, int to);

/* Opens the loop of a step over `count` points: those of all blocks, or of one. */
void cu_put_points(cu_function *f, const char *count);

/* The C type of a buffer's elements. If CUDA code does not support it, the step is refused. */
const char *cu_checked_type(cu_function *f, int buffer);

#endif
