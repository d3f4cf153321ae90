/* index_range.h — the range of an integer expression, and its dependence on the current unit of length. */
#ifndef CU_INDEX_RANGE_H
#define CU_INDEX_RANGE_H

#include "plan/plan.h"

/* The values unit * u + [low, high], where u is the unit of length (0 … L-1) of the surrounding loops. Unbounded
 * ends are INT64_MIN and INT64_MAX. */
typedef struct cu_range {
    int64_t unit, low, high;
} cu_range;

cu_range cu_range_constant(int64_t n);
cu_range cu_range_between(int64_t low, int64_t high);
bool cu_range_is_bounded(cu_range s);
cu_range cu_range_add(cu_range a, cu_range b);
cu_range cu_range_scale(cu_range s, int64_t factor);

/* The ranges of a kernel's loops; max_length bounds the length itself, and max_steps the enclosing recurrence. */
typedef struct cu_space {
    int64_t max_length, max_steps;
    int loop_count;
    cu_range loop[PL_MAX_LOOPS];
} cu_space;

/* The range of an expression of integer or BOOL type. It is conservative: it contains all values and may be wider. */
cu_range cu_range_of(const cu_space *space, const pl_expr *expr);
/* The same with the values of u substituted, so that unit is 0. */
cu_range cu_range_whole(const cu_space *space, cu_range s);

#endif
