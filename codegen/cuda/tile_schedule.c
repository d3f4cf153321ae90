/* tile_schedule.c — the schedules: a block or a cluster of blocks takes tiles in turn, and reads all weights of its
 * stage from global memory. Any grid of whole clusters is correct. */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_text.h"

/* Blocks that run at once, one on each multiprocessor: an H100 has 132, and clusters fill 128 of them. */
enum { MULTIPROCESSORS = 128, MOST_UNITS = 64 };

static void put_once(const cu_schedule *s, cu_text *target)
{
    cu_put(target, "    if (blockIdx.x == 0) {\n        const tile t = {0, 1, whole.length};\n");
}

/* The tile's number, or the number of tiles that the grid takes at once. */
static void put_number(cu_text *target, const char *of, int blocks)
{
    cu_put(target, blocks > 1 ? "(int)%s / %d" : "(int)%s", of, blocks);
}

static void put_tiles(const cu_schedule *s, cu_text *target, const char *count, int blocks)
{
    cu_put(target, "    for (int first = ");
    put_number(target, "blockIdx.x", blocks);
    cu_put(target, " * %d; first < %s; first += ", s->tile_units, count);
    put_number(target, "gridDim.x", blocks);
    cu_put(target, " * %d) {\n        const tile t = {first, min(%d, %s - first), whole.length};\n", s->tile_units,
           s->tile_units, count);
}

static void put_next_tile(const cu_schedule *s, cu_text *target, const char *count, int blocks, const char *barrier)
{
    cu_put(target, "        if (first + ");
    put_number(target, "gridDim.x", blocks);
    cu_put(target, " * %d < %s) %s; // another tile follows\n", s->tile_units, count, barrier);
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
#define SCHEDULE(blocks)                                                                                               \
    {                                                                                                                  \
        .tile_units = 16, .threads = 256, .blocks_per_tile = blocks, .weights = "weights_memory",                      \
        .kinds = {[PL_LINEAR] = &cu_linear_kind,                                                                       \
                  [PL_ATTENTION] = &cu_attention_kind,                                                                 \
                  [PL_NORM] = &cu_norm_kind,                                                                           \
                  [PL_NEST] = &cu_nest_kind,                                                                           \
                  [PL_SEQUENTIAL] = &cu_sequential_kind,                                                               \
                  [PL_RECURRENCE] = &cu_recurrence_kind},                                                              \
        .put_once = put_once, .put_tiles = put_tiles, .put_next_tile = put_next_tile,                                  \
        .put_grid_barrier = put_grid_barrier, .put_all_points = put_all_points, .put_tile_points = put_tile_points     \
    }
const cu_schedule cu_blocks = SCHEDULE(1), cu_clusters = SCHEDULE(8);

cu_schedule cu_fit_schedule(const cu_schedule *schedule, int64_t max_length)
{
    cu_schedule fitted = *schedule;
    /* Fewer blocks read more weights each, and so do blocks with fewer rows. */
    bool grows = false;
    while (fitted.blocks_per_tile > 1 &&
           (max_length + fitted.tile_units - 1) / fitted.tile_units * fitted.blocks_per_tile > MULTIPROCESSORS) {
        if (grows && fitted.tile_units < MOST_UNITS)
            fitted.tile_units *= 2;
        else
            fitted.blocks_per_tile /= 2;
        grows = !grows;
    }
    if (fitted.blocks_per_tile == 1) fitted.tile_units = schedule->tile_units;
    if (max_length == 0) fitted.blocks_per_tile = 1;
    return fitted;
}
