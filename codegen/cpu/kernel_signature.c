/* kernel_signature.c — a kernel's specification as bytes.
 *
 * The layers of a Transformer repeat the same kernels on other buffers, and buckets repeat whole plans. Such code is
 * generated once. The key contains everything that an emitter may read: the fields of the kernel and its
 * expressions, with buffers numbered by first use; the properties of each buffer that a kernel depends on; and
 * whether the target rounds factors. Bucket lengths are excluded, because extents are affine in the run-time length.
 */
#include "codegen/cpu/kernel_signature.h"

#include "codegen/cpu/bf16.h"
#include "codegen/cpu/pointer_map.h"

#include <assert.h>

typedef struct writer {
    const pl_plan *plan;
    ir_arena *arena;
    size_t count, capacity;
    unsigned char *bytes;
    int buffer_count, buffer_capacity;
    int *buffers;         /* in the order of first use */
    int *position;        /* index of each plan buffer in `buffers`, or -1 */
    cg_pointer_map nodes; /* expression → its number, starting at 1 */
    size_t node_count;
    bool failed;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t count)
{
    if (w->count + count > w->capacity) {
        size_t capacity = 2 * w->capacity + count + 256;
        unsigned char *wider = IR_NEW_ARRAY(w->arena, unsigned char, capacity);
        if (wider == NULL) {
            w->failed = true;
            return;
        }
        if (w->count) memcpy(wider, w->bytes, w->count);
        w->bytes = wider;
        w->capacity = capacity;
    }
    memcpy(w->bytes + w->count, bytes, count);
    w->count += count;
}

static void put(writer *w, int64_t value)
{
    put_bytes(w, &value, sizeof value);
}

static void put_real(writer *w, double value)
{
    put_bytes(w, &value, sizeof value);
}

static void put_dim(writer *w, ir_dim dim)
{
    put(w, dim.scale);
    put(w, dim.offset);
}

static void put_buffer(writer *w, int buffer)
{
    put(w, buffer < 0 ? -1 : w->position[buffer]);
}

static void put_matrix(writer *w, const pl_matrix *matrix)
{
    put_buffer(w, matrix->buffer);
    if (matrix->buffer < 0) return;
    put_dim(w, matrix->offset);
    put_dim(w, matrix->row_stride);
}

/* A node that was written before becomes a reference. */
static void put_expr(writer *w, const pl_expr *expr)
{
    void *number;
    if (expr == NULL || cg_pointer_map_get(&w->nodes, expr, &number)) {
        put(w, -1);
        put(w, expr != NULL ? (int64_t)(uintptr_t)number : 0);
        return;
    }
    put(w, expr->op);
    put(w, expr->dtype);
    if (expr->op == PL_LOAD)
        put_buffer(w, expr->i);
    else
        put(w, expr->i);
    put_real(w, expr->f);
    put(w, expr->n);
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++) put_expr(w, expr->arg[i]);
    cg_pointer_map_put(&w->nodes, expr, (void *)(uintptr_t)++w->node_count);
}

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

static void put_linear(writer *w, const pl_linear *k)
{
    put_matrix(w, &k->a);
    put_dim(w, k->rows);
    put(w, k->k);
    put(w, k->columns);
    put_buffer(w, k->weight);
    put_buffer(w, k->bias);
    put_expr(w, k->epilogue);
    put_matrix(w, &k->out);
}

static void put_heads(writer *w, const pl_heads *heads)
{
    put_buffer(w, heads->buffer);
    put_dim(w, heads->offset);
    put_dim(w, heads->batch_stride);
    put_dim(w, heads->head_stride);
    put_dim(w, heads->row_stride);
}

static void put_attention(writer *w, const pl_attention *k)
{
    put_dim(w, k->batch);
    put(w, k->heads);
    put(w, k->kv_heads);
    put_dim(w, k->queries);
    put_dim(w, k->keys);
    put(w, k->dim);
    put(w, k->value_dim);
    put_real(w, k->scale);
    put_real(w, k->softcap);
    put_heads(w, &k->q);
    put_heads(w, &k->k);
    put_heads(w, &k->v);
    put_heads(w, &k->out);
    put_buffer(w, k->mask);
    put_dim(w, k->mask_batch);
    put_dim(w, k->mask_head);
    put_dim(w, k->mask_query);
    put_real(w, k->replaces);
    put(w, k->causal);
}

static void put_norm(writer *w, const pl_norm *k)
{
    put(w, k->mode);
    put_dim(w, k->rows);
    put_dim(w, k->columns);
    put_expr(w, k->input);
    put_real(w, k->epsilon);
    put_buffer(w, k->gamma);
    put_buffer(w, k->beta);
    put_expr(w, k->epilogue);
    put_matrix(w, &k->out);
    put_matrix(w, &k->sum);
}

static void put_nest(writer *w, const pl_nest *k)
{
    put(w, k->loop_count);
    put(w, k->reduce_count);
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) put_dim(w, k->extent[i]);
    put(w, k->reducer);
    put_expr(w, k->body);
    put(w, k->store_count);
    for (int i = 0; i < k->store_count; i++) {
        put_buffer(w, k->store[i].buffer);
        put_expr(w, k->store[i].index);
        put_expr(w, k->store[i].value);
    }
}

/* The kernel's shapes are those of its buffers. */
static void put_sequential(writer *w, const pl_sequential *k)
{
    put(w, k->what);
    for (int i = 0; i < 4; i++) put_buffer(w, k->input[i]);
    for (int i = 0; i < 2; i++) put_buffer(w, k->output[i]);
    put(w, k->axis);
    put(w, k->exclusive | k->reverse << 1 | k->largest << 2 | k->sorted << 3 | k->circular << 4);
    put(w, k->reduction);
    for (int b = 0; b < w->buffer_count; b++) {
        const ir_type *type = &w->plan->buffers[w->buffers[b]].type;
        put(w, type->rank);
        for (int d = 0; d < type->rank; d++) put_dim(w, type->dim[d]);
    }
}

static void put_kernel(writer *w, const pl_kernel *kernel);

static void put_recurrence(writer *w, const pl_recurrence *k)
{
    put_dim(w, k->steps);
    put(w, k->kernel_count);
    for (int i = 0; i < k->kernel_count; i++) put_kernel(w, &k->kernels[i]);
}

static void put_kernel(writer *w, const pl_kernel *kernel)
{
    put(w, kernel->kind);
    switch (kernel->kind) {
    case PL_LINEAR:
        put_linear(w, &kernel->linear);
        break;
    case PL_ATTENTION:
        put_attention(w, &kernel->attention);
        break;
    case PL_NORM:
        put_norm(w, &kernel->norm);
        break;
    case PL_NEST:
        put_nest(w, &kernel->nest);
        break;
    case PL_SEQUENTIAL:
        put_sequential(w, &kernel->sequential);
        break;
    case PL_RECURRENCE:
        put_recurrence(w, &kernel->recurrence);
        break;
    }
}

static void meet_buffer(void *user, int buffer, bool is_written)
{
    writer *w = user;
    (void)is_written;
    if (w->position[buffer] >= 0) return;
    if (w->buffer_count == w->buffer_capacity) {
        int capacity = 2 * w->buffer_capacity + 8;
        int *wider = IR_NEW_ARRAY(w->arena, int, capacity);
        if (wider == NULL) {
            w->failed = true;
            return;
        }
        if (w->buffer_count > 0) memcpy(wider, w->buffers, (size_t)w->buffer_count * sizeof *wider);
        w->buffers = wider;
        w->buffer_capacity = capacity;
    }
    w->position[buffer] = w->buffer_count;
    w->buffers[w->buffer_count++] = buffer;
}

int *cg_key_positions(const pl_plan *plan, ir_arena *arena)
{
    int *positions = IR_NEW_ARRAY(arena, int, plan->buffer_count + 1);
    for (int b = 0; positions != NULL && b < plan->buffer_count; b++) positions[b] = -1;
    return positions;
}

bool cg_signature_of(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel, int *positions,
                     ir_arena *arena, cg_signature *out_key)
{
    writer w = {.plan = plan, .arena = arena, .position = positions};
    cg_pointer_map_init(&w.nodes, arena);
    pl_kernel_visit_buffers(kernel, meet_buffer, &w);
    for (int b = 0; b < w.buffer_count; b++) {
        put(&w, cg_stored_dtype(target, &plan->buffers[w.buffers[b]]));
        put(&w, plan->buffers[w.buffers[b]].use);
    }
    put(&w, cg_multiplies_half(target, plan, kernel));
    put_kernel(&w, kernel);
    for (int b = 0; b < w.buffer_count; b++) positions[w.buffers[b]] = -1;
    if (w.failed) return false;
    *out_key = (cg_signature){.bytes = w.bytes,
                              .count = w.count,
                              .hash = mdot_abi_checksum(w.bytes, w.count, 0),
                              .buffer_count = w.buffer_count,
                              .buffers = w.buffers};
    return true;
}
