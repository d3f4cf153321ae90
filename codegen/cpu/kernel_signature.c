/* kernel_signature.c — a kernel's specification as bytes.
 *
 * The layers of a Transformer repeat the same kernels on other buffers, and buckets repeat whole plans. Such code is
 * generated once. The signature contains everything that an emitter may read: the fields of the kernel and its
 * expressions, with buffers numbered by first use; the properties of each buffer that a kernel depends on; and
 * whether the target rounds factors. Bucket lengths are excluded, because code computes extents, and offsets that
 * depend on them, from the run-time length. Therefore an emitter must not read the plan's length.
 */
#include "codegen/cpu/signatures.h"

#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "plan/kernel_kind.h"

static void note_buffer(void *user, int buffer, bool is_written)
{
    cg_signature_writer *w = user;
    if (w->position[buffer] >= 0) return;
    int *array = ir_arena_grow(w->arena, w->buffers, w->buffer_count, &w->buffer_capacity, sizeof *w->buffers);
    w->failed = w->failed || array == NULL;
    if (array == NULL) return;
    w->buffers = array;
    w->position[buffer] = w->buffer_count;
    w->buffers[w->buffer_count++] = buffer;
}

int *cg_signature_positions(const pl_plan *plan, ir_arena *arena)
{
    int *positions = IR_NEW_ARRAY(arena, int, plan->buffer_count + 1);
    for (int b = 0; positions != NULL && b < plan->buffer_count; b++) positions[b] = -1;
    return positions;
}

bool cg_signature_of(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel, int *positions,
                     ir_arena *arena, cg_signature *out_signature)
{
    cg_signature_writer w = {.plan = plan, .arena = arena, .position = positions};
    cg_pointer_map_init(&w.nodes, arena);
    pl_kernel_visit_buffers(kernel, note_buffer, &w);
    for (int b = 0; b < w.buffer_count; b++) {
        cg_signature_add(&w, cg_stored_dtype(target, &plan->buffers[w.buffers[b]]));
        cg_signature_add(&w, plan->buffers[w.buffers[b]].use);
    }
    cg_signature_add(&w, cg_multiplies_bf16(target, plan, kernel));
    cg_signature_add(&w, kernel->kind);
    cg_signature_add(&w, kernel->limit != NULL);
    if (kernel->limit != NULL) {
        cg_signature_add_buffer(&w, kernel->limit->count);
        cg_signature_add(&w, kernel->limit->loop);
        cg_signature_add(&w, kernel->limit->points);
    }
    cg_kinds[kernel->kind]->sign(kernel, &w);
    for (int b = 0; b < w.buffer_count; b++) positions[w.buffers[b]] = -1;
    if (w.failed) return false;
    size_t size_bytes = (size_t)w.count * sizeof *w.numbers;
    *out_signature = (cg_signature){.bytes = w.numbers,
                                    .count = size_bytes,
                                    .hash = mdot_abi_checksum(w.numbers, size_bytes, 0),
                                    .buffer_count = w.buffer_count,
                                    .buffers = w.buffers};
    return true;
}
