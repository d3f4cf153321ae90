/* memo.h — pointer → pointer, for walks over expressions that must visit a shared sub-tree once.
 *
 * Open addressing in a power of two of slots, at most half of them full. The first slots stand in the structure itself;
 * more come from an arena. When memory is out a pair is not kept: walks stay right and become slower, and the arena
 * remembers that it failed.
 */
#ifndef CG_CPU_MEMO_H
#define CG_CPU_MEMO_H

#include "ir/arena.h"

#include <stdint.h>

typedef struct cg_memo_slot {
    const void *key; /* NULL: free */
    void *value;
} cg_memo_slot;

enum { CG_MEMO_FIRST_SLOTS = 128 };

typedef struct cg_memo {
    ir_arena *arena;
    size_t slots, used;
    cg_memo_slot *slot;
    cg_memo_slot first[CG_MEMO_FIRST_SLOTS];
} cg_memo;

static inline void cg_memo_init(cg_memo *memo, ir_arena *arena)
{
    memo->arena = arena;
    memo->slots = CG_MEMO_FIRST_SLOTS;
    memo->used = 0;
    memo->slot = memo->first;
    for (int i = 0; i < CG_MEMO_FIRST_SLOTS; i++) memo->first[i].key = NULL;
}

/* The key's slot, or the free one where it belongs. */
static inline cg_memo_slot *cg_memo_find(cg_memo_slot *slots, size_t count, const void *key)
{
    for (size_t i = (uintptr_t)key / 16 * UINT64_C(0x9E3779B97F4A7C15) >> 20;; i++) {
        cg_memo_slot *slot = &slots[i & (count - 1)];
        if (slot->key == key || slot->key == NULL) return slot;
    }
}

static inline bool cg_memo_get(const cg_memo *memo, const void *key, void **out_value)
{
    const cg_memo_slot *slot = cg_memo_find(memo->slot, memo->slots, key);
    if (slot->key == NULL) return false;
    *out_value = slot->value;
    return true;
}

static inline void cg_memo_put(cg_memo *memo, const void *key, void *value)
{
    if (2 * memo->used >= memo->slots) {
        size_t slots = 4 * memo->slots;
        cg_memo_slot *wider = IR_NEW_ARRAY(memo->arena, cg_memo_slot, slots);
        if (wider == NULL) return;
        for (size_t i = 0; i < memo->slots; i++)
            if (memo->slot[i].key != NULL) *cg_memo_find(wider, slots, memo->slot[i].key) = memo->slot[i];
        memo->slots = slots;
        memo->slot = wider;
    }
    *cg_memo_find(memo->slot, memo->slots, key) = (cg_memo_slot){key, value};
    memo->used++;
}

#endif
