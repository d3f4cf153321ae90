/* happens_before.c — happens-before between the threads of a launch.
 *
 * Time counts the synchronisations of the whole launch. They run one after another, therefore one number stamps an
 * access. A thread knows another up to a time if all actions of the other until then happen before its own next
 * action. Knowledge comes from the PTX memory model's morally strong synchronisation (PTX ISA, "Memory Consistency
 * Model"), which is transitive:
 *
 *   __syncthreads       the block knows all its threads; the whole block gets the knowledge that any thread acquired
 *   cluster_barrier     the same for all blocks of a cluster
 *   __syncwarp          the lanes of the mask know one another. Shuffles, votes and mma leave memory unordered.
 *   release → acquire   at device scope through a flag: the reader gets the writer's knowledge. A relaxed write after
 *                       a __threadfence releases the knowledge at the fence, and a __threadfence after a relaxed
 *                       read acquires the knowledge that came with the value.
 *
 * A block holds one vector over the grid's threads. A thread adds the lanes of its warp and, between an acquire and
 * the block's next barrier, its own vector.
 */
#include "tests/cuda_host/machine.h"

#include <stdlib.h>
#include <string.h>

typedef struct released {
    const void *flag;
    ch_time *known; /* indexed by thread */
} released;

static released *flags;
static int flag_count, flag_capacity;

static void join(ch_time *into, const ch_time *from, int count)
{
    for (int k = 0; k < count; k++)
        if (from[k] > into[k]) into[k] = from[k];
}

static size_t vector_bytes(void) { return (size_t)ch.thread_count * sizeof(ch_time); }

static void need(const void *memory)
{
    if (!memory) ch_fault(0, NULL, "out of memory");
}

bool ch_order_begin(void)
{
    ch.now = 1;
    for (int b = 0; b < ch.block_count; b++) {
        ch.blocks[b].known = calloc(1, vector_bytes());
        ch.blocks[b].known_blocks = calloc((size_t)ch.block_count, sizeof(ch_time));
        if (!ch.blocks[b].known || !ch.blocks[b].known_blocks) return false;
    }
    return true;
}

void ch_order_end(void)
{
    for (int b = 0; b < ch.block_count; b++) {
        free(ch.blocks[b].known);
        free(ch.blocks[b].known_blocks);
    }
    for (int t = 0; t < ch.thread_count; t++) {
        free(ch.threads[t].acquired);
        free(ch.threads[t].seen);
        free(ch.threads[t].fenced);
    }
    for (int k = 0; k < flag_count; k++) free(flags[k].known);
    free(flags);
    flags = NULL;
    flag_count = flag_capacity = 0;
}

bool ch_knows(const ch_thread *t, unsigned thread, ch_time when)
{
    if (thread == t->index || when <= t->warp->block->known[thread]) return true;
    if (thread / CH_WARP == t->index / CH_WARP && when <= t->peer[thread % CH_WARP]) return true;
    return t->acquired && when <= t->acquired[thread];
}

static bool knows_range(const ch_thread *t, unsigned first, unsigned count, ch_time when)
{
    for (unsigned k = first; k < first + count; k++)
        if (!ch_knows(t, k, when)) return false;
    return true;
}

bool ch_knows_warp(const ch_thread *t, unsigned warp, ch_time when)
{
    return knows_range(t, warp * CH_WARP, CH_WARP, when);
}

bool ch_knows_block(const ch_thread *t, unsigned block, ch_time when)
{
    if (when <= t->warp->block->known_blocks[block]) return true;
    unsigned count = (unsigned)ch.threads_per_block;
    return t->acquired && knows_range(t, block * count, count, when);
}

void ch_order_block(ch_block *block)
{
    int count = ch.threads_per_block;
    ch_thread *own = &ch.threads[(int)block->index * count];
    bool learned = false;
    for (int k = 0; k < count; k++) {
        if (!own[k].acquired) continue;
        join(block->known, own[k].acquired, ch.thread_count);
        free(own[k].acquired);
        own[k].acquired = NULL;
        learned = true;
    }
    for (int k = 0; k < count; k++) block->known[own[k].index] = ch.now;
    if (learned) {
        for (int b = 0; b < ch.block_count; b++) {
            ch_time least = ch.now;
            for (int k = b * count; k < (b + 1) * count; k++)
                if (block->known[k] < least) least = block->known[k];
            block->known_blocks[b] = least;
        }
    }
    block->known_blocks[block->index] = ch.now++;
}

void ch_order_cluster(ch_block *first)
{
    int count = ch.threads_per_block;
    for (int b = 0; b < ch.blocks_per_cluster; b++) {
        ch_order_block(&first[b]);
        join(first->known, first[b].known, ch.thread_count);
    }
    for (int b = 0; b < ch.block_count; b++) {
        ch_time least = first->known[b * count];
        for (int k = b * count; k < (b + 1) * count; k++)
            if (first->known[k] < least) least = first->known[k];
        first->known_blocks[b] = least;
    }
    for (int b = 1; b < ch.blocks_per_cluster; b++) {
        memcpy(first[b].known, first->known, vector_bytes());
        memcpy(first[b].known_blocks, first->known_blocks, (size_t)ch.block_count * sizeof(ch_time));
    }
}

void ch_order_warp(ch_warp *warp, uint32_t mask)
{
    ch_time lanes[CH_WARP] = {0};
    ch_time *acquired = NULL;
    for (int k = 0; k < CH_WARP; k++) {
        if (!(mask >> k & 1)) continue;
        ch_thread *t = &warp->threads[k];
        join(lanes, t->peer, CH_WARP);
        if (t->acquired && !acquired) {
            acquired = t->acquired;
        } else if (t->acquired) {
            join(acquired, t->acquired, ch.thread_count);
        }
    }
    for (int k = 0; k < CH_WARP; k++)
        if (mask >> k & 1) lanes[k] = ch.now;
    for (int k = 0; k < CH_WARP; k++) {
        if (!(mask >> k & 1)) continue;
        ch_thread *t = &warp->threads[k];
        memcpy(t->peer, lanes, sizeof lanes);
        if (!acquired || t->acquired == acquired) continue;
        if (!t->acquired) need(t->acquired = malloc(vector_bytes()));
        memcpy(t->acquired, acquired, vector_bytes());
    }
    ch.now++;
}

static released *find_flag(const void *flag)
{
    for (int k = 0; k < flag_count; k++)
        if (flags[k].flag == flag) return &flags[k];
    return NULL;
}

static released *add_flag(const void *flag)
{
    if (flag_count == flag_capacity) {
        int capacity = flag_capacity ? 2 * flag_capacity : 16;
        released *grown = realloc(flags, (size_t)capacity * sizeof *grown);
        need(grown);
        flags = grown;
        flag_capacity = capacity;
    }
    released *r = &flags[flag_count];
    *r = (released){.flag = flag, .known = calloc(1, vector_bytes())};
    need(r->known);
    flag_count++;
    return r;
}

/* Adds the knowledge of the thread, including itself, to `into`. */
static void join_knowledge(ch_time *into, const ch_thread *t)
{
    join(into, t->warp->block->known, ch.thread_count);
    join(into + t->index / CH_WARP * CH_WARP, t->peer, CH_WARP);
    if (t->acquired) join(into, t->acquired, ch.thread_count);
    into[t->index] = ch.now++;
}

static void learn(ch_time **vector, const ch_time *from)
{
    if (!*vector) need(*vector = calloc(1, vector_bytes()));
    join(*vector, from, ch.thread_count);
}

void ch_order_write(ch_thread *t, const void *flag, bool releases, bool joins)
{
    released *r = find_flag(flag);
    if (!r && !releases && !t->fenced) return;
    if (!r) r = add_flag(flag);
    if (!joins) memset(r->known, 0, vector_bytes());
    if (releases) {
        join_knowledge(r->known, t);
    } else if (t->fenced) {
        join(r->known, t->fenced, ch.thread_count);
    }
}

void ch_order_read(ch_thread *t, const void *flag, bool acquires)
{
    const released *r = find_flag(flag);
    if (r) learn(acquires ? &t->acquired : &t->seen, r->known);
}

void ch_order_fence(ch_thread *t)
{
    if (t->seen) learn(&t->acquired, t->seen);
    if (!t->fenced) need(t->fenced = calloc(1, vector_bytes()));
    join_knowledge(t->fenced, t);
}

bool ch_was_released(const void *flag, unsigned thread, ch_time when)
{
    const released *r = find_flag(flag);
    return r && when <= r->known[thread];
}
