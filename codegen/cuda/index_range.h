/* index_range.h — what an integer expression can be, and how it follows the unit of length that is being worked on. */
#ifndef CU_INDEX_RANGE_H
#define CU_INDEX_RANGE_H

#include "ir/plan/plan.h"

/* The values unit * u + [low, high], where u is the unit of length (0 … L-1) that the surrounding loops are at. Ends
 * that nothing bounds are INT64_MIN and INT64_MAX. */
typedef struct cu_range {
    int64_t unit, low, high;
} cu_range;

cu_range cu_range_constant(int64_t n);
cu_range cu_range_between(int64_t low, int64_t high);
bool cu_range_is_bounded(cu_range s);
cu_range cu_range_add(cu_range a, cu_range b);
cu_range cu_range_scale(cu_range s, int64_t factor);

/* What the loops of a kernel run over; max_length bounds the length itself. */
typedef struct cu_space {
    int64_t max_length;
    int loop_count;
    cu_range loop[PL_MAX_LOOPS];
} cu_space;

/* Of an expression of integer or BOOL type. Conservative: the span may be wider than the values, never narrower. */
cu_range cu_range_of(const cu_space *space, const pl_expr *expr);
/* The same with u's own values put in: unit is 0. */
cu_range cu_range_whole(const cu_space *space, cu_range s);

#endif
