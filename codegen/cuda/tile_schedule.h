/* tile_schedule.h — the schedule with one block per tile. */
#ifndef CU_TILE_SCHEDULE_H
#define CU_TILE_SCHEDULE_H

#include "codegen/cuda/schedule.h"

extern const cu_schedule cu_blocks;

#endif
