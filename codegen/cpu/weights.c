/* weights.c — see cpu_images.h.
 *
 * Buckets share the model's tensors, and passes create equal tensors in each of them (for example a transposed
 * matrix). Both are stored once. A tensor is packed only once per packing, and equal bytes share their place across
 * layouts. So images of different layouts share all constants whose packed bytes are equal.
 */
#include "codegen/cpu/cpu_images.h"

#include "codegen/byte_pool.h"
#include "codegen/cpu/cpu_target.h"

#include <stdlib.h>
#include <string.h>

/* All inputs of the packing, as a record without padding, so equal sources have equal bytes. */
typedef struct source {
    uint64_t data, form, count, columns; /* form: the packing of a matrix; 0 for dense constants */
} source;

typedef struct packer {
    cg_pool *weights;
    cg_pool sources; /* source[]: the sources already packed */
    cg_pool places;  /* uint64_t[]: their offsets, with the same indices */
    void *buffer;    /* buffer for the largest packed constant so far */
    size_t buffer_bytes;
} packer;

static mdot_status out_of_memory(mdot_error *err) { return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL); }

static mdot_status pack(packer *p, const cg_packing *packing, const pl_buffer *buffer, size_t size_bytes,
                        const void **out_bytes, mdot_error *err)
{
    if (buffer->use == PL_ELEMENTS) {
        *out_bytes = buffer->constant->data;
        return MDOT_OK;
    }
    if (size_bytes > p->buffer_bytes) {
        void *wider = realloc(p->buffer, size_bytes);
        if (wider == NULL) return BS_OUT_OF_MEMORY(err, "%zu packed bytes", size_bytes);
        p->buffer = wider;
        p->buffer_bytes = size_bytes;
    }
    cg_pack(packing, buffer->constant, buffer->use, p->buffer);
    *out_bytes = p->buffer;
    return MDOT_OK;
}

static mdot_status place(packer *p, const cg_packing *packing, const pl_buffer *buffer, size_t size_bytes,
                         uint64_t *out_at, mdot_error *err)
{
    const ir_tensor *tensor = buffer->constant;
    source key = {.data = (uintptr_t)tensor->data,
                  .form = buffer->use != PL_ELEMENTS ? (uintptr_t)packing : 0,
                  .count = size_bytes,
                  .columns = tensor->rank > 0 ? (uint64_t)tensor->dims[tensor->rank - 1] : 1};
    size_t index = cg_pool_intern(&p->sources, &key, sizeof key, sizeof key) / sizeof key;
    if (p->sources.failed) return out_of_memory(err);
    if (index < p->places.size_bytes / sizeof *out_at) {
        memcpy(out_at, p->places.bytes + index * sizeof *out_at, sizeof *out_at);
        return MDOT_OK;
    }
    const void *bytes = NULL;
    BS_TRY(pack(p, packing, buffer, size_bytes, &bytes, err));
    *out_at = cg_pool_intern(p->weights, bytes, size_bytes, MDOT_ABI_ALIGNMENT);
    size_t at = cg_pool_reserve(&p->places, sizeof *out_at, sizeof *out_at);
    if (p->weights->failed || p->places.failed) return out_of_memory(err);
    memcpy(p->places.bytes + at, out_at, sizeof *out_at);
    return MDOT_OK;
}

static mdot_status lay_out_plan(packer *p, const pl_plan *plan, cg_placement *placement, int64_t *offsets,
                                mdot_error *err)
{
    for (int b = 0; b < plan->buffer_count; b++) {
        const pl_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != PL_WEIGHT) continue;
        const cg_packing *packing = cg_packing_of(placement->layout, buffer);
        int64_t size_bytes = cg_packed_bytes(packing, buffer->constant, buffer->use);
        if (size_bytes < 0) return mdot_fail(err, MDOT_UNSUPPORTED, "constant %s is too large", buffer->name);
        if (size_bytes == 0) continue; /* at 0, because it is never read */
        uint64_t position = 0;
        BS_TRY(place(p, packing, buffer, (size_t)size_bytes, &position, err));
        offsets[b] = (int64_t)position;
        if (position < placement->first) placement->first = position;
        if (position + (uint64_t)size_bytes > placement->end) placement->end = position + (size_t)size_bytes;
    }
    return MDOT_OK;
}

static mdot_status lay_out_all(packer *p, const cg_entry *entries, int entry_count, cg_placement *placement,
                               ir_arena *arena, mdot_error *err)
{
    int plan_count = 0, number = 0;
    for (int e = 0; e < entry_count; e++) plan_count += entries[e].plan_count;
    placement->offset = IR_NEW_ARRAY(arena, int64_t *, plan_count + 1);
    if (placement->offset == NULL) return out_of_memory(err);
    for (int e = 0; e < entry_count; e++)
        for (int i = 0; i < entries[e].plan_count; i++, number++) {
            const pl_plan *plan = entries[e].plans[i];
            int64_t *offsets = placement->offset[number] = IR_NEW_ARRAY(arena, int64_t, plan->buffer_count + 1);
            if (offsets == NULL) return out_of_memory(err);
            BS_TRY(lay_out_plan(p, plan, placement, offsets, err));
        }
    return MDOT_OK;
}

/* Converts offsets in the section to offsets from the first byte that the layout's code reads. */
static void count_from_first(const cg_entry *entries, int entry_count, const cg_placement *placement)
{
    for (int e = 0, number = 0; e < entry_count; e++)
        for (int i = 0; i < entries[e].plan_count; i++, number++)
            for (int b = 0; b < entries[e].plans[i]->buffer_count; b++) {
                const pl_buffer *buffer = &entries[e].plans[i]->buffers[b];
                if (buffer->kind == PL_WEIGHT && buffer->constant->count > 0)
                    placement->offset[number][b] -= (int64_t)placement->first;
            }
}

mdot_status cg_lay_out_weights(const cg_entry *entries, int entry_count, const cg_layout *const *layouts,
                               int layout_count, cg_pool *weights, cg_placement *out_placements, ir_arena *arena,
                               mdot_error *err)
{
    packer p = {.weights = weights};
    mdot_status status = MDOT_OK;
    for (int k = 0; k < layout_count && status == MDOT_OK; k++) {
        cg_placement *placement = &out_placements[k];
        *placement = (cg_placement){.layout = layouts[k], .first = SIZE_MAX};
        status = lay_out_all(&p, entries, entry_count, placement, arena, err);
        if (placement->first > placement->end) placement->first = placement->end = 0; /* there are no weights */
        placement->end = (placement->end + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
        if (status == MDOT_OK) count_from_first(entries, entry_count, placement);
    }
    size_t padding = MDOT_ABI_ALIGNMENT - weights->size_bytes % MDOT_ABI_ALIGNMENT;
    cg_pool_reserve(weights, padding, 1);
    if (status == MDOT_OK && weights->failed) status = out_of_memory(err);
    cg_pool_done(&p.sources);
    cg_pool_done(&p.places);
    free(p.buffer);
    return status;
}
