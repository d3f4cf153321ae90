/* equal_blocks.c — finds the equal blocks (layers) of a job. Equal blocks have the same operators, connected in the
 * same way.
 *
 * The comparison covers types, settings, forward FLOPs and bytes, and the operators of the block that each operator
 * reads. Gradient FLOPs and bytes are ignored, because the last layer of a stack passes its result to fewer readers.
 * Parameters are ignored, because layers that share them count them once.
 */
#include "runtime/job/job_model.h"
#include "runtime/job/operator_hash.h"

#include <stdlib.h>

typedef struct block {
    uint32_t first, count; /* range in `members` */
    uint32_t like, equal;  /* index of the first equal block; there, the number of equal blocks */
    uint64_t hash;
} block;

typedef struct blocks {
    const mdot_job_operator *operators;
    size_t operator_count;
    uint32_t count;
    block *block;             /* indexed by block number - 1 */
    uint32_t *members;        /* operators, grouped by block */
    uint32_t *index_in_block; /* of each operator */
} blocks;

static void collect(blocks *b)
{
    for (size_t i = 0; i < b->operator_count; i++)
        if (b->operators[i].block > 0) b->block[b->operators[i].block - 1].count++;
    for (uint32_t k = 1; k < b->count; k++) b->block[k].first = b->block[k - 1].first + b->block[k - 1].count;
    for (uint32_t k = 0; k < b->count; k++) b->block[k].count = 0;
    for (size_t i = 0; i < b->operator_count; i++) {
        if (b->operators[i].block == 0) continue;
        block *block_at = &b->block[b->operators[i].block - 1];
        b->index_in_block[i] = block_at->count;
        b->members[block_at->first + block_at->count++] = (uint32_t)i;
    }
}

/* Finds the next operator in the same block that `op` reads, from input *position on, and stores its index in the
 * block. Returns false after the last one. */
static bool next_inside(const blocks *b, const mdot_job_operator *op, size_t *position, uint32_t *out_index)
{
    while (*position < op->input_count) {
        uint32_t input = op->inputs[(*position)++];
        if (b->operators[input].block != op->block) continue;
        *out_index = b->index_in_block[input];
        return true;
    }
    return false;
}

static uint64_t hash_of(const blocks *b, const block *hashed)
{
    uint64_t hash = RT_HASH_START ^ hashed->count;
    for (uint32_t i = 0; i < hashed->count; i++) {
        const mdot_job_operator *op = &b->operators[b->members[hashed->first + i]];
        hash = rt_hash(hash ^ op->traits.number, op->setting, sizeof op->setting);
        hash = rt_hash(hash, &op->per_sample[MDOT_PHASE_FORWARD], sizeof(mdot_load));
        hash = rt_hash(hash, &op->per_step[MDOT_PHASE_FORWARD], sizeof(mdot_load));
    }
    return hash;
}

static bool equal_inside(const blocks *b, const mdot_job_operator *x, const mdot_job_operator *y)
{
    uint32_t from_x = 0, from_y = 0;
    for (size_t i = 0, k = 0;;) {
        bool more_x = next_inside(b, x, &i, &from_x), more_y = next_inside(b, y, &k, &from_y);
        if (more_x != more_y || (more_x && from_x != from_y)) return false;
        if (!more_x) return true;
    }
}

static bool equal_operators(const mdot_job_operator *x, const mdot_job_operator *y)
{
    return x->known == y->known && x->type == y->type && /* Equal strings share one pointer (string_pool.c). */
           memcmp(x->setting, y->setting, sizeof x->setting) == 0 &&
           memcmp(&x->per_sample[MDOT_PHASE_FORWARD], &y->per_sample[MDOT_PHASE_FORWARD], sizeof(mdot_load)) == 0 &&
           memcmp(&x->per_step[MDOT_PHASE_FORWARD], &y->per_step[MDOT_PHASE_FORWARD], sizeof(mdot_load)) == 0 &&
           memcmp(&x->per_square[MDOT_PHASE_FORWARD], &y->per_square[MDOT_PHASE_FORWARD], sizeof(mdot_load)) == 0 &&
           x->batch_settings == y->batch_settings;
}

static bool equal_blocks(const blocks *b, const block *x, const block *y)
{
    if (x->hash != y->hash || x->count != y->count) return false;
    for (uint32_t i = 0; i < x->count; i++) {
        const mdot_job_operator *p = &b->operators[b->members[x->first + i]];
        const mdot_job_operator *q = &b->operators[b->members[y->first + i]];
        if (!equal_operators(p, q) || !equal_inside(b, p, q)) return false;
    }
    return true;
}

/* Slots hold a block's number. The first of several equal blocks counts them. A block that finds an equal one neither
 * there nor within RT_MOST_PROBES slots is counted as unique. */
static void count_equal(const blocks *b, uint32_t *slots, size_t slot_count)
{
    for (uint32_t k = 0; k < b->count; k++) {
        b->block[k].hash = hash_of(b, &b->block[k]);
        size_t slot = b->block[k].hash & (slot_count - 1);
        int left = RT_MOST_PROBES;
        for (; slots[slot] != 0 && left > 0; slot = (slot + 1) & (slot_count - 1), left--)
            if (equal_blocks(b, &b->block[slots[slot] - 1], &b->block[k])) break;
        b->block[k].like = slots[slot] == 0 || left == 0 ? k : slots[slot] - 1;
        if (slots[slot] == 0) slots[slot] = k + 1;
        b->block[b->block[k].like].equal++;
    }
}

bool rt_compare_blocks(mdot_job_operator *operators, size_t count, uint32_t block_count)
{
    size_t slot_count = rt_hash_slots(block_count);
    if (block_count == 0) return true;
    blocks b = {.operators = operators,
                .operator_count = count,
                .count = block_count,
                .block = calloc(block_count, sizeof *b.block),
                .members = calloc(count, sizeof *b.members),
                .index_in_block = calloc(count, sizeof *b.index_in_block)};
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    bool allocated = b.block != NULL && b.members != NULL && b.index_in_block != NULL && slots != NULL;
    if (allocated) {
        collect(&b);
        count_equal(&b, slots, slot_count);
        for (size_t i = 0; i < count; i++) {
            mdot_job_operator *op = &operators[i];
            if (op->block > 0) op->equal_blocks = b.block[b.block[op->block - 1].like].equal;
        }
    }
    free(b.block);
    free(b.members);
    free(b.index_in_block);
    free(slots);
    return allocated;
}
