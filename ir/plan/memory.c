/* memory.c — the memory plan: an offset in the scratch memory for every SCRATCH buffer, so that buffers that live at
 * the same time do not overlap.
 *
 * Greedy by size with best fit, after Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
 * (2020): the largest buffers are placed first, each in the smallest gap that holds it between the buffers placed so
 * far whose lives overlap its own, or after them all.
 */
#include "ir/plan/plan.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector */

typedef struct block {
    int buffer;
    int64_t bytes; /* rounded up to the alignment */
    int64_t offset;
    int first, last;
} block;

static int compare_blocks(const void *left, const void *right)
{
    const block *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->buffer < b->buffer ? -1 : 1;
}

/* `placed` is in the order of offsets. */
static int64_t best_fit(const block *wanted, block *const *placed, int placed_count)
{
    int64_t end = 0, best = -1, best_gap = 0;
    for (int i = 0; i < placed_count; i++) {
        const block *other = placed[i];
        if (other->last < wanted->first || other->first > wanted->last) continue;
        int64_t gap = other->offset - end;
        if (gap >= wanted->bytes && (best < 0 || gap < best_gap)) {
            best = end;
            best_gap = gap;
        }
        if (other->offset + other->bytes > end) end = other->offset + other->bytes;
    }
    return best >= 0 ? best : end;
}

static void insert_by_offset(block *new_block, block **placed, int placed_count)
{
    int i = placed_count;
    for (; i > 0 && placed[i - 1]->offset > new_block->offset; i--) placed[i] = placed[i - 1];
    placed[i] = new_block;
}

bool pl_assign_memory(pl_plan *plan)
{
    block *blocks = IR_NEW_ARRAY(plan->arena, block, plan->buffer_count + 1);
    block **placed = IR_NEW_ARRAY(plan->arena, block *, plan->buffer_count + 1);
    if (blocks == NULL || placed == NULL) return false;
    int count = 0;
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != PL_SCRATCH || buffer->first_use < 0) continue;
        int64_t bytes = (buffer->max_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        blocks[count++] = (block){b, bytes, 0, buffer->first_use, buffer->last_use};
    }
    qsort(blocks, (size_t)count, sizeof *blocks, compare_blocks);
    plan->scratch_bytes = 0;
    for (int i = 0; i < count; i++) {
        block *current = &blocks[i];
        current->offset = best_fit(current, placed, i);
        insert_by_offset(current, placed, i);
        plan->buffers[current->buffer].offset_bytes = current->offset;
        int64_t end = current->offset + current->bytes;
        if (end > plan->scratch_bytes) plan->scratch_bytes = end;
    }
    return true;
}
