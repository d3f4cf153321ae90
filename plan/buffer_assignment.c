/* buffer_assignment.c — the memory plan: an offset in the scratch memory for every SCRATCH buffer, so buffers that are
 * live at the same time do not overlap.
 *
 * Greedy by size with best fit, after Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
 * (2020). The largest buffers are placed first. Each goes into the smallest sufficient gap between the placed buffers
 * whose lifetimes overlap its own, or behind them all. A tree over the kernels finds those buffers, so planning time
 * grows in proportion to the model if its lifetimes are short. */
#include "plan/plan.h"
#include "plan/planner.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 }; /* a cache line, which is also the widest vector */

typedef struct block {
    int buffer;
    int64_t bytes; /* rounded up to the alignment */
    int64_t offset;
    int first, last;
    const struct block *found_for; /* the block whose search found this one last */
} block;

/* A segment tree over the kernels (Bentley 1977). A block is entered at the few nodes whose ranges make up its
 * lifetime. */
typedef struct entry {
    block *block;
    const struct entry *next;
} entry;
typedef struct tree_node {
    const entry *entries;
    int below; /* entries at this node and below it */
} tree_node;
typedef struct tree {
    ir_arena *arena;
    tree_node *nodes; /* node 1 is the root; 2n and 2n + 1 are the halves of n */
    int kernels;      /* rounded up to a power of two */
} tree;

/* `node` covers the kernels first … last. */
static bool add_life(const tree *t, int node, int first, int last_index, block *placed)
{
    if (placed->last < first || placed->first > last_index) return true;
    tree_node *here = &t->nodes[node];
    here->below++;
    if (placed->first <= first && last_index <= placed->last) {
        entry *e = IR_NEW(t->arena, entry);
        if (e == NULL) return false;
        *e = (entry){placed, here->entries};
        here->entries = e;
        return true;
    }
    int middle = first + (last_index - first) / 2;
    return add_life(t, 2 * node, first, middle, placed) && add_life(t, 2 * node + 1, middle + 1, last_index, placed);
}

typedef struct search {
    const block *wanted;
    block **found;
    int count, most;
} search;

/* False: more than `most` were found. */
static bool find_overlapping(const tree *t, int node, int first, int last_index, search *s)
{
    if (s->wanted->last < first || s->wanted->first > last_index || t->nodes[node].below == 0) return true;
    for (const entry *e = t->nodes[node].entries; e != NULL; e = e->next) {
        if (e->block->found_for == s->wanted) continue;
        if (s->count == s->most) return false;
        e->block->found_for = s->wanted;
        s->found[s->count++] = e->block;
    }
    if (first == last_index) return true;
    int middle = first + (last_index - first) / 2;
    return find_overlapping(t, 2 * node, first, middle, s) &&
           find_overlapping(t, 2 * node + 1, middle + 1, last_index, s);
}

static int compare_offsets(const void *left, const void *right)
{
    const block *a = *(block *const *)left, *b = *(block *const *)right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static int compare_blocks(const void *left, const void *right)
{
    const block *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->buffer < b->buffer ? -1 : 1;
}

/* `placed` is sorted by offset. */
static int64_t best_fit(const block *wanted, block *const *placed, int placed_count)
{
    int64_t end = 0, best = -1, best_gap = 0;
    for (int i = 0; i < placed_count; i++) {
        const block *other_item = placed[i];
        if (other_item->last < wanted->first || other_item->first > wanted->last) continue;
        int64_t gap = other_item->offset - end;
        if (gap >= wanted->bytes && (best < 0 || gap < best_gap)) {
            best = end;
            best_gap = gap;
        }
        if (other_item->offset + other_item->bytes > end) end = other_item->offset + other_item->bytes;
    }
    return best >= 0 ? best : end;
}

static void insert_by_offset(block *new_block, block **placed, int placed_count)
{
    int low = 0, high = placed_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (placed[middle]->offset > new_block->offset)
            high = middle;
        else
            low = middle + 1;
    }
    memmove(&placed[low + 1], &placed[low], (size_t)(placed_count - low) * sizeof(block *));
    placed[low] = new_block;
}

/* If few lifetimes overlap that of the block, they are collected and sorted. If many do, walking through all placed
 * blocks in the order of offsets is faster. */
static int64_t place(const tree *t, const block *wanted, block **placed, int placed_count, block **found)
{
    enum { FEW = 32, SHARE = 16 };
    search s = {.wanted = wanted, .found = found, .most = FEW + placed_count / SHARE};
    if (!find_overlapping(t, 1, 0, t->kernels - 1, &s)) return best_fit(wanted, placed, placed_count);
    qsort(found, (size_t)s.count, sizeof(block *), compare_offsets);
    return best_fit(wanted, found, s.count);
}

bool pl_assign_memory(pl_plan *plan)
{
    tree t = {.arena = plan->arena, .kernels = 1};
    for (int b = 0; b < plan->buffer_count; b++)
        while (t.kernels <= plan->buffers[b].last_use) t.kernels *= 2;
    t.nodes = IR_NEW_ARRAY(plan->arena, tree_node, 2 * (size_t)t.kernels);
    block *blocks = IR_NEW_ARRAY(plan->arena, block, plan->buffer_count + 1);
    block **placed = IR_NEW_ARRAY(plan->arena, block *, plan->buffer_count + 1);
    block **found = IR_NEW_ARRAY(plan->arena, block *, plan->buffer_count + 64);
    if (t.nodes == NULL || blocks == NULL || placed == NULL || found == NULL) return false;
    int count = 0;
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != PL_SCRATCH || buffer->first_use < 0) continue;
        int64_t bytes = (pl_capacity_bytes(plan, buffer) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        blocks[count++] = (block){b, bytes, 0, buffer->first_use, buffer->last_use, NULL};
    }
    qsort(blocks, (size_t)count, sizeof *blocks, compare_blocks);
    plan->scratch_bytes = 0;
    for (int i = 0; i < count; i++) {
        block *current = &blocks[i];
        current->offset = place(&t, current, placed, i, found);
        insert_by_offset(current, placed, i);
        if (!add_life(&t, 1, 0, t.kernels - 1, current)) return false;
        plan->buffers[current->buffer].offset_bytes = current->offset;
        int64_t end = current->offset + current->bytes;
        if (end > plan->scratch_bytes) plan->scratch_bytes = end;
    }
    return true;
}
