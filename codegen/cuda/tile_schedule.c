/* tile_schedule.c — the schedule with one block per tile. Blocks take tiles in turn, and each reads all weights of its
 * stage from global memory. Any grid size is correct. */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_text.h"

static void put_once(const cu_schedule *s, cu_text *target)
{
    cu_put(target, "    if (blockIdx.x == 0) {\n        const tile t = {0, 1, whole.length};\n");
}

static void put_tiles(const cu_schedule *s, cu_text *target, const char *count)
{
    cu_put(target,
           "    for (int first = blockIdx.x * %d; first < %s; first += gridDim.x * %d) {\n"
           "        const tile t = {first, min(%d, %s - first), whole.length};\n",
           s->tile_units, count, s->tile_units, s->tile_units, count);
}

static void put_next_tile(const cu_schedule *s, cu_text *target, const char *count)
{
    cu_put(target, "        if (first + (int)gridDim.x * %d < %s) __syncthreads(); // another tile follows\n",
           s->tile_units, count);
}

static void put_grid_barrier(const cu_schedule *s, cu_text *to)
{
    cu_put(to, "    grid_barrier(barrier, target += gridDim.x);\n");
}

static void put_all_points(const cu_schedule *s, cu_text *target, const char *count)
{
    cu_put(target, "    for (int point = blockIdx.x * %d + threadIdx.x; point < %s; point += gridDim.x * %d) {\n",
           s->threads, count, s->threads);
}

static void put_tile_points(const cu_schedule *s, cu_text *target, const char *count)
{
    cu_put(target, "    for (int point = threadIdx.x; point < %s; point += %d) {\n", count, s->threads);
}

/* A tile has the rows of a matrix instruction: fewer would waste most of one, more would leave blocks idle. Eight warps
 * are two per scheduler of a multiprocessor, so one's loads overlap with the other's work. */
const cu_schedule cu_blocks = {.tile_units = 16,
                               .threads = 256,
                               .weights = "weights_memory",
                               .kinds = {[PL_LINEAR] = &cu_linear_kind,
                                         [PL_ATTENTION] = &cu_attention_kind,
                                         [PL_NORM] = &cu_norm_kind,
                                         [PL_NEST] = &cu_nest_kind,
                                         [PL_SEQUENTIAL] = &cu_sequential_kind,
                                         [PL_RECURRENCE] = &cu_recurrence_kind},
                               .put_once = put_once,
                               .put_tiles = put_tiles,
                               .put_next_tile = put_next_tile,
                               .put_grid_barrier = put_grid_barrier,
                               .put_all_points = put_all_points,
                               .put_tile_points = put_tile_points};
