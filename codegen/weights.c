/* weights.c — the constants of all plans in one block, as the artefact's weights section holds them.
 *
 * Buckets share the model's tensors, and passes make equal tensors in each of them (a transposed matrix, say). Both are
 * stored once: the same tensor in the same layout is not even packed again, and equal packed bytes share their place.
 */
#include "codegen/artefact.h"
#include "mdot/mdot_abi.h"
#include "weights/pack.h"

#include <stdlib.h>
#include <string.h>

/* All that packed bytes follow from, as a record without padding, so that equal sources are equal bytes. */
typedef struct source {
    uint64_t data, layout, count, columns;
} source;

typedef struct packer {
    cg_pool *weights;
    cg_pool sources;    /* source[]: what was packed before … */
    cg_pool places;     /* uint64_t[]: … and where it went */
    void *panel_buffer; /* the largest panel form so far */
    size_t panel_bytes;
} packer;

static mdot_status pack(packer *p, const ir_tensor *tensor, pl_weight_layout layout, size_t size_bytes,
                        const void **out_bytes, mdot_error *err)
{
    if (layout == PL_DENSE) {
        *out_bytes = tensor->data;
        return MDOT_OK;
    }
    if (size_bytes > p->panel_bytes) {
        void *buffer = realloc(p->panel_buffer, size_bytes);
        if (buffer == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory to pack %zu bytes", size_bytes);
        p->panel_buffer = buffer;
        p->panel_bytes = size_bytes;
    }
    wt_pack(tensor, layout, p->panel_buffer);
    *out_bytes = p->panel_buffer;
    return MDOT_OK;
}

static mdot_status place(packer *p, pl_buffer *buffer, mdot_error *err)
{
    const ir_tensor *tensor = buffer->constant;
    int64_t size_bytes = wt_packed_bytes(tensor, buffer->layout);
    if (size_bytes < 0) return mdot_fail(err, MDOT_UNSUPPORTED, "constant %s is too large", buffer->name);
    if (size_bytes == 0) {
        buffer->offset_bytes = 0;
        return MDOT_OK;
    }
    source key = {.data = (uintptr_t)tensor->data,
                  .layout = buffer->layout,
                  .count = (uint64_t)size_bytes,
                  .columns = tensor->rank > 0 ? (uint64_t)tensor->dims[tensor->rank - 1] : 1};
    size_t index = cg_pool_share(&p->sources, &key, sizeof key, sizeof key) / sizeof key;
    if (p->sources.failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory to pack the weights");
    if (index < p->places.size_bytes / sizeof(uint64_t)) {
        memcpy(&buffer->offset_bytes, p->places.bytes + index * sizeof(uint64_t), sizeof(uint64_t));
        return MDOT_OK;
    }
    const void *bytes = NULL;
    mdot_status status = pack(p, tensor, buffer->layout, (size_t)size_bytes, &bytes, err);
    if (status != MDOT_OK) return status;
    buffer->offset_bytes = (int64_t)cg_pool_share(p->weights, bytes, (size_t)size_bytes, MDOT_ABI_ALIGNMENT);
    size_t at = cg_pool_reserve(&p->places, sizeof(uint64_t), sizeof(uint64_t));
    if (p->weights->failed || p->places.failed)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory to pack the weights");
    memcpy(p->places.bytes + at, &buffer->offset_bytes, sizeof(uint64_t));
    return MDOT_OK;
}

static mdot_status place_plan(packer *p, pl_plan *plan, mdot_error *err)
{
    for (int i = 0; i < plan->buffer_count; i++) {
        if (plan->buffers[i].kind != PL_WEIGHT) continue;
        mdot_status status = place(p, &plan->buffers[i], err);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}

mdot_status cg_pack_weights(const cg_entry *entries, int entry_count, cg_pool *weights, mdot_error *err)
{
    packer p = {.weights = weights};
    mdot_status status = MDOT_OK;
    for (int e = 0; e < entry_count && status == MDOT_OK; e++)
        for (int i = 0; i < entries[e].plan_count && status == MDOT_OK; i++)
            status = place_plan(&p, entries[e].plans[i], err);
    /* kernels may read whole vectors of the last weight's row: the section ends at the alignment, and is never empty */
    size_t padding = MDOT_ABI_ALIGNMENT - weights->size_bytes % MDOT_ABI_ALIGNMENT;
    cg_pool_reserve(weights, padding, 1);
    if (status == MDOT_OK && weights->failed)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory to pack the weights");
    cg_pool_done(&p.sources);
    cg_pool_done(&p.places);
    free(p.panel_buffer);
    return status;
}
