/* cpu_attention.c — softmax(scale q kᵀ + mask) v for every batch and head; selects the form (cpu_attention.h).
 *
 * A query that may attend to no key at all gives zeros, as ONNX's Attention requires (opset 24).
 */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/signatures.h"
#include "plan/kernel_kind.h"

#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

static LLVMValueRef head_pointer(cg_emitter *e, const pl_plan *plan, const LLVMValueRef *buffers, const pl_heads *heads,
                                 LLVMValueRef batch, LLVMValueRef head)
{
    LLVMValueRef offset = cg_dim(e, heads->offset);
    offset = cg_iadd(e, offset, cg_imul(e, batch, cg_dim(e, heads->batch_stride)));
    offset = cg_iadd(e, offset, cg_imul(e, head, cg_dim(e, heads->head_stride)));
    return cg_at(e, cg_stored_type(e, plan, heads->buffer), buffers[heads->buffer], offset);
}

static cg_attention_head locate_head(cg_emitter *e, const pl_plan *plan, const pl_attention *k,
                                     const LLVMValueRef *buffers, LLVMValueRef batch, LLVMValueRef head,
                                     LLVMValueRef kv_head)
{
    cg_attention_head h = {
        .plan = plan,
        .k = k,
        .use_bf16_dot = cg_attention_uses_bf16(plan, k, e->target),
        .queries = cg_dim(e, k->queries),
        .keys = cg_dim(e, k->keys),
        .q = head_pointer(e, plan, buffers, &k->q, batch, head),
        .key = head_pointer(e, plan, buffers, &k->k, batch, kv_head),
        .value = head_pointer(e, plan, buffers, &k->v, batch, kv_head),
        .out = head_pointer(e, plan, buffers, &k->out, batch, head),
        .q_stride = cg_dim(e, k->q.row_stride),
        .key_stride = cg_dim(e, k->k.row_stride),
        .value_stride = cg_dim(e, k->v.row_stride),
        .out_stride = cg_dim(e, k->out.row_stride),
    };
    h.tiles = h.use_bf16_dot && e->target->matmul == CG_MATMUL_AMX;
    for (int i = 0; i < k->mask_count; i++) {
        h.mask[i] = head_pointer(e, plan, buffers, &k->mask[i], batch, head);
        h.mask_stride[i] = cg_dim(e, k->mask[i].row_stride);
    }
    return h;
}

static int64_t scratch_bytes(const pl_plan *plan, const pl_kernel *kernel, const cg_cpu_target *target)
{
    const pl_attention *k = &kernel->attention;
    return cg_attention_is_small(k, target) ? 0 : cg_attention_stream_scratch_bytes(plan, k, target);
}

/* All heads in the slice's batches. Used for attention with few positions, and for attention that is not split. */
static void emit_batches(cg_emitter *e, const pl_plan *plan, const pl_attention *k, const LLVMValueRef *buffers,
                         LLVMValueRef scratch, cg_range batches)
{
    int64_t group = k->heads / k->kv_heads; /* query heads that share a key head */
    CG_FOR (e, batch, batches.from, batches.to, 1)
        CG_FOR_NONEMPTY (e, kv_head, cg_int(e, 0), cg_int(e, k->kv_heads), 1)
            CG_FOR_NONEMPTY (e, member, cg_int(e, 0), cg_int(e, group), 1) {
                LLVMValueRef head = cg_iadd(e, cg_imul(e, kv_head.index, cg_int(e, group)), member.index);
                cg_attention_head h = locate_head(e, plan, k, buffers, batch.index, head, kv_head.index);
                h.slice = (cg_range){cg_int(e, 0), h.queries};
                if (cg_attention_is_small(k, e->target))
                    cg_attention_small(e, &h);
                else
                    cg_attention_stream(e, &h, scratch);
            }
}

/* The units are a head's blocks of queries, concatenated over all heads. Therefore a long sequence with few heads
 * can be distributed as evenly as a large batch. */
static void emit_query_blocks(cg_emitter *e, const pl_plan *plan, const pl_attention *k, const LLVMValueRef *buffers,
                              LLVMValueRef scratch)
{
    int64_t group = k->heads / k->kv_heads;
    LLVMValueRef grain = cg_int(e, cg_attention_stream_grain(e->target)), one = cg_int(e, 1);
    LLVMValueRef queries = cg_dim(e, k->queries), heads = cg_imul(e, cg_dim(e, k->batch), cg_int(e, k->heads));
    LLVMValueRef blocks = LLVMBuildUDiv(e->builder, cg_isub(e, cg_iadd(e, queries, grain), one), grain, "");
    LLVMValueRef some = cg_imax(e, blocks, one); /* avoids division by zero if there are no queries */
    cg_range slice = cg_slice_of(e, cg_imul(e, heads, blocks));
    LLVMValueRef first = LLVMBuildUDiv(e->builder, slice.from, some, "");
    LLVMValueRef end = LLVMBuildUDiv(e->builder, cg_isub(e, cg_iadd(e, slice.to, some), one), some, "");
    CG_FOR (e, loop, first, end, 1) {
        LLVMValueRef head = LLVMBuildURem(e->builder, loop.index, cg_int(e, k->heads), "");
        LLVMValueRef batch = LLVMBuildUDiv(e->builder, loop.index, cg_int(e, k->heads), "");
        LLVMValueRef kv_head = LLVMBuildUDiv(e->builder, head, cg_int(e, group), "");
        cg_attention_head h = locate_head(e, plan, k, buffers, batch, head, kv_head);
        LLVMValueRef before = cg_imul(e, loop.index, blocks); /* number of blocks in earlier heads */
        LLVMValueRef source = cg_imax(e, cg_isub(e, slice.from, before), cg_int(e, 0));
        LLVMValueRef target = cg_imin(e, cg_isub(e, slice.to, before), blocks);
        h.slice = (cg_range){cg_imul(e, source, grain), cg_imin(e, cg_imul(e, target, grain), queries)};
        cg_attention_stream(e, &h, scratch);
    }
}

static void emit(cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel, const LLVMValueRef *buffers,
                 LLVMValueRef scratch)
{
    const pl_attention *k = &kernel->attention;
    LLVMValueRef batches = cg_dim(e, k->batch);
    if (e->target->matmul == CG_MATMUL_AMX) cg_amx_begin_kernel(e);
    if (!pl_is_split(plan, kernel))
        emit_batches(e, plan, k, buffers, scratch, (cg_range){cg_int(e, 0), batches});
    else if (cg_attention_is_small(k, e->target))
        emit_batches(e, plan, k, buffers, scratch, cg_slice_of(e, batches));
    else
        emit_query_blocks(e, plan, k, buffers, scratch);
}

static void sign_heads(cg_signature_writer *w, const pl_heads *heads)
{
    cg_signature_add_buffer(w, heads->buffer);
    cg_signature_add_dim(w, heads->offset);
    cg_signature_add_dim(w, heads->batch_stride);
    cg_signature_add_dim(w, heads->head_stride);
    cg_signature_add_dim(w, heads->row_stride);
}

static void sign(const pl_kernel *kernel, cg_signature_writer *w)
{
    const pl_attention *k = &kernel->attention;
    cg_signature_add_dim(w, k->batch);
    cg_signature_add(w, k->heads);
    cg_signature_add(w, k->kv_heads);
    cg_signature_add_dim(w, k->queries);
    cg_signature_add_dim(w, k->keys);
    cg_signature_add(w, k->dim);
    cg_signature_add(w, k->value_dim);
    cg_signature_add_real(w, k->scale);
    cg_signature_add_real(w, k->softcap);
    sign_heads(w, &k->q);
    sign_heads(w, &k->k);
    sign_heads(w, &k->v);
    sign_heads(w, &k->out);
    for (int i = 0; i < k->mask_count; i++) {
        sign_heads(w, &k->mask[i]);
        cg_signature_add_real(w, k->replaces[i]);
    }
    cg_signature_add(w, k->causal);
}

const cg_kind_ops cg_attention_kind = {.emit = emit, .scratch_bytes = scratch_bytes, .sign = sign};
