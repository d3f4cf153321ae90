/* signatures.h — kernels and symbols by their specification, as bytes. */
#pragma once

#include "codegen/cpu/cpu_target.h"
#include "ir/arena.h"
#include "plan/plan.h"

#include <stdint.h>
#include <string.h>

/* ---- a map from pointer to pointer, for walks over expressions that must visit a shared sub-tree once.
 *
 * It uses open addressing in a power of two of slots, at most half of them full. The first slots are in the
 * structure itself; more come from an arena. If memory runs out, new pairs are dropped: walks stay correct but
 * become slower, and the arena records the failure.
 */

typedef struct cg_pointer_map_slot {
    const void *key; /* NULL: free */
    void *value;
} cg_pointer_map_slot;

enum { CG_POINTER_MAP_FIRST_SLOTS = 128 };

typedef struct cg_pointer_map {
    ir_arena *arena;
    size_t slots, used;
    cg_pointer_map_slot *slot;
    cg_pointer_map_slot first[CG_POINTER_MAP_FIRST_SLOTS];
} cg_pointer_map;

static inline void cg_pointer_map_init(cg_pointer_map *map, ir_arena *arena)
{
    map->arena = arena;
    map->slots = CG_POINTER_MAP_FIRST_SLOTS;
    map->used = 0;
    map->slot = map->first;
    for (int i = 0; i < CG_POINTER_MAP_FIRST_SLOTS; i++) map->first[i].key = NULL;
}

/* The key's slot, or the free slot where it belongs. */
static inline cg_pointer_map_slot *cg_pointer_map_find(cg_pointer_map_slot *slots, size_t count, const void *key)
{
    for (size_t i = (uintptr_t)key / 16 * UINT64_C(0x9E3779B97F4A7C15) >> 20;; i++) {
        cg_pointer_map_slot *slot = &slots[i & (count - 1)];
        if (slot->key == key || slot->key == NULL) return slot;
    }
}

static inline bool cg_pointer_map_get(const cg_pointer_map *map, const void *key, void **out_value)
{
    const cg_pointer_map_slot *slot = cg_pointer_map_find(map->slot, map->slots, key);
    if (slot->key == NULL) return false;
    *out_value = slot->value;
    return true;
}

static inline void cg_pointer_map_put(cg_pointer_map *map, const void *key, void *value)
{
    if (2 * map->used >= map->slots) {
        size_t slots = 4 * map->slots;
        cg_pointer_map_slot *larger = IR_NEW_ARRAY(map->arena, cg_pointer_map_slot, slots);
        if (larger == NULL) return;
        for (size_t i = 0; i < map->slots; i++)
            if (map->slot[i].key != NULL) *cg_pointer_map_find(larger, slots, map->slot[i].key) = map->slot[i];
        map->slots = slots;
        map->slot = larger;
    }
    *cg_pointer_map_find(map->slot, map->slots, key) = (cg_pointer_map_slot){key, value};
    map->used++;
}

/* ---- signature_writer.c: appends numbers, buffers and expressions to the signature of a kernel ------------------- */

typedef struct cg_signature_writer {
    const pl_plan *plan;
    ir_arena *arena;
    int count, capacity;
    int64_t *numbers;
    int buffer_count, buffer_capacity;
    int *buffers;         /* in the order of first use */
    int *position;        /* index of each plan buffer in `buffers`, or -1 */
    cg_pointer_map nodes; /* expression → its number, starting at 1 */
    size_t node_count;
    bool failed;
} cg_signature_writer;

void cg_signature_add(cg_signature_writer *w, int64_t value);
void cg_signature_add_real(cg_signature_writer *w, double value);
void cg_signature_add_dim(cg_signature_writer *w, ir_dim dim);
void cg_signature_add_buffer(cg_signature_writer *w, int buffer); /* -1: none */
void cg_signature_add_matrix(cg_signature_writer *w, const pl_matrix *matrix);
/* A node that was written before becomes a reference. NULL: no expression. */
void cg_signature_add_expr(cg_signature_writer *w, const pl_expr *expr);

/* ---- kernel_signature.c: the signature of a kernel: its specification as bytes. Kernels with equal signatures have
 * the same code. */

typedef struct cg_signature {
    const void *bytes;
    size_t count;
    uint64_t hash;
    int buffer_count;
    const int *buffers; /* plan buffers in the order of first use: the function's parameters */
} cg_signature;

/* An array in which cg_signature_of maps a plan's buffers to the kernel's. All kernels of a plan share it, so a kernel
 * needs memory only for its own buffers. In the arena; NULL if memory runs out. */
int *cg_signature_positions(const pl_plan *plan, ir_arena *arena);
/* The signature of the kernel's code for a target, in the arena. `positions` is restored afterwards. Returns false if
 * memory runs out. */
bool cg_signature_of(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel, int *positions,
                     ir_arena *arena, cg_signature *out_signature);

static inline bool cg_signature_equal(const cg_signature *a, const cg_signature *b)
{
    return a->hash == b->hash && a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}
