/* kind_attention.c — attention kernels: softmax(scale q kᵀ + mask) v for every batch and head. */
#include "plan/kernel_kind.h"
#include "plan/kind_tools.h"

#include <inttypes.h>

static void visit(const pl_kernel *kernel, const pl_visitor *v)
{
    const pl_attention *k = &kernel->attention;
    pl_visit_factor(v, k->q.buffer);
    pl_visit_factor(v, k->k.buffer);
    pl_visit_factor(v, k->v.buffer);
    for (int i = 0; i < k->mask_count; i++) pl_visit_read(v, k->mask[i].buffer);
    pl_visit_write(v, k->out.buffer);
}

static void put_heads(FILE *t, const char *name, const pl_heads *h)
{
    fprintf(t, "  %s b%d", name, h->buffer);
    pl_put_named_dim(t, "offset", h->offset);
    pl_put_named_dim(t, "batch", h->batch_stride);
    pl_put_named_dim(t, "head", h->head_stride);
    pl_put_named_dim(t, "row", h->row_stride);
    fprintf(t, "\n");
}

static void print(const pl_kernel *kernel, FILE *t)
{
    const pl_attention *k = &kernel->attention;
    fprintf(t, "  batch ");
    pl_put_dim(t, k->batch);
    fprintf(t, " heads %" PRId64 " kv_heads %" PRId64, k->heads, k->kv_heads);
    pl_put_named_dim(t, "queries", k->queries);
    pl_put_named_dim(t, "keys", k->keys);
    fprintf(t, " dim %" PRId64 " value_dim %" PRId64, k->dim, k->value_dim);
    pl_put_real(t, " scale", k->scale, PL_F32_DIGITS);
    if (k->softcap > 0) pl_put_real(t, " softcap", k->softcap, PL_F32_DIGITS);
    fprintf(t, "%s\n", k->causal ? " causal" : "");
    put_heads(t, "q", &k->q);
    put_heads(t, "k", &k->k);
    put_heads(t, "v", &k->v);
    for (int i = 0; i < k->mask_count; i++) {
        fprintf(t, "  mask b%d", k->mask[i].buffer);
        pl_put_named_dim(t, "batch", k->mask[i].batch_stride);
        pl_put_named_dim(t, "head", k->mask[i].head_stride);
        pl_put_named_dim(t, "query", k->mask[i].row_stride);
        if (k->replaces[i] < 0) pl_put_real(t, " replaces", k->replaces[i], PL_F32_DIGITS);
        fprintf(t, "\n");
    }
    put_heads(t, "out", &k->out);
}

static void check_heads(pl_checker *c, const pl_heads *h, ir_dim batch, int64_t heads, ir_dim rows, int64_t dim)
{
    const pl_buffer *buffer = pl_check_buffer(c, h->buffer);
    if (buffer == NULL) return;
    int64_t length = c->plan->max_length ? c->plan->max_length : 1;
    pl_wide_int last_offset = ir_dim_at(h->offset, length) + dim - 1;
    last_offset += (pl_wide_int)(ir_dim_at(batch, length) - 1) * ir_dim_at(h->batch_stride, length);
    last_offset += (pl_wide_int)(heads - 1) * ir_dim_at(h->head_stride, length);
    last_offset += (pl_wide_int)(ir_dim_at(rows, length) - 1) * ir_dim_at(h->row_stride, length);
    if (last_offset >= ir_type_count_at(&buffer->type, length))
        pl_check_fail(c, "heads exceed their buffer", h->buffer);
    if (buffer->type.dtype != MDOT_DTYPE_F32) pl_check_fail(c, "heads must be f32", h->buffer);
}

static void verify(const pl_kernel *kernel, pl_checker *c)
{
    const pl_attention *k = &kernel->attention;
    check_heads(c, &k->q, k->batch, k->heads, k->queries, k->dim);
    check_heads(c, &k->k, k->batch, k->kv_heads, k->keys, k->dim);
    check_heads(c, &k->v, k->batch, k->kv_heads, k->keys, k->value_dim);
    check_heads(c, &k->out, k->batch, k->heads, k->queries, k->value_dim);
    if (c->status != MDOT_OK) return;
    pl_check_read(c, k->q.buffer, c->is_matrix);
    pl_check_read(c, k->k.buffer, c->is_matrix);
    pl_check_read(c, k->v.buffer, c->is_matrix);
    if (k->kv_heads <= 0 || k->heads % k->kv_heads != 0)
        pl_check_fail(c, "the number of heads must be a multiple of the number of key heads", k->q.buffer);
    for (int i = 0; i < k->mask_count; i++) {
        pl_check_read(c, k->mask[i].buffer, false);
        if (ir_dim_is_number(k->keys)) check_heads(c, &k->mask[i], k->batch, k->heads, k->queries, k->keys.offset);
    }
}

enum {
    CHANNELS = 16,      /* one or two k steps of a matrix instruction; heads of other widths would need padding */
    MOST_CHANNELS = 128 /* per head, because its sums are kept in registers */
};

static bool is_made(const pl_plan *plan, int buffer)
{
    pl_buffer_kind kind = plan->buffers[buffer].kind;
    return kind == PL_SCRATCH || kind == PL_OUTPUT;
}

/* Are `elements` consecutive elements contiguous and aligned to their number? */
static bool is_aligned(const pl_heads *h, int64_t elements)
{
    return ir_dim_is_multiple(h->offset, elements) && ir_dim_is_multiple(h->head_stride, elements) &&
           ir_dim_is_multiple(h->row_stride, elements);
}

/* Do rows of heads fill the buffer? Then the channels of a position are in one row at every length. */
static bool fills_rows(const pl_plan *plan, const pl_heads *h, int64_t heads, int64_t dim)
{
    const ir_type *type = &plan->buffers[h->buffer].type;
    if (!ir_dim_is_number(h->offset) || !ir_dim_is_number(h->row_stride)) return false;
    if (heads > 1 && !ir_dim_is_number(h->head_stride)) return false;
    int64_t row = h->row_stride.offset, last_index = h->offset.offset + (heads - 1) * h->head_stride.offset + dim - 1;
    return ir_type_count_at(type, 1) == row && ir_type_count_at(type, 2) == 2 * row && h->offset.offset >= 0 &&
           last_index < row;
}

/* The rule is the same for every target, so the 16-bit buffers do not depend on the image. The strictest target
 * decides: the alignments below are those of the lanes of CUDA's 16-row matrix instructions.
 *
 * It applies to self-attention of one sequence over the length. Other attentions are short (the tokens of an operator)
 * or have a fixed number of queries; they are computed in f32. */
static bool is_matrix(const pl_kernel *kernel, const pl_plan *plan)
{
    const pl_attention *k = &kernel->attention;
    int64_t value_lane = k->value_dim / 8; /* v channels per lane, for eight lanes: must be a power of two */
    bool is_sequence = ir_dim_is(k->batch, 1) && ir_dim_equal(k->queries, ir_dim_affine(1, 0));
    bool is_even = k->dim % CHANNELS == 0 && k->value_dim % CHANNELS == 0 && (value_lane & (value_lane - 1)) == 0;
    if (!is_sequence || !is_even || k->dim > MOST_CHANNELS || k->value_dim > MOST_CHANNELS) return false;
    if (!is_made(plan, k->q.buffer) || !is_made(plan, k->k.buffer) || !is_made(plan, k->v.buffer)) return false;
    int64_t key_elements = k->dim % (2 * CHANNELS) == 0 ? 8 : 4, value_elements = value_lane < 8 ? value_lane : 8;
    return is_aligned(&k->q, key_elements) && is_aligned(&k->k, key_elements) && is_aligned(&k->v, value_elements) &&
           fills_rows(plan, &k->out, k->heads, k->value_dim);
}

static bool heads_follow(const pl_units *u, const pl_heads *h)
{
    return ir_dim_is_number(h->head_stride) && ir_dim_is_number(h->row_stride) &&
           pl_stride_follows(u, h->buffer, h->offset, h->batch_stride);
}

/* Attention within each unit, for example among the parts of an operator: the batch runs over the units. */
static bool is_rowwise(const pl_kernel *kernel, pl_units *u)
{
    const pl_attention *k = &kernel->attention;
    for (int i = 0; i < k->mask_count; i++)
        if (!heads_follow(u, &k->mask[i])) return false;
    return pl_begin_units(u, 0, k->batch) && ir_dim_is_number(k->queries) && ir_dim_is_number(k->keys) &&
           heads_follow(u, &k->q) && heads_follow(u, &k->k) && heads_follow(u, &k->v) && heads_follow(u, &k->out);
}

static bool is_split(const pl_kernel *kernel, const pl_plan *plan)
{
    return pl_is_split_extent(kernel->attention.batch) || pl_is_split_extent(kernel->attention.queries);
}

const pl_kind_ops pl_attention_kind = {
    .visit = visit,
    .print = print,
    .verify = verify,
    .is_matrix = is_matrix,
    .is_rowwise = is_rowwise,
    .is_split = is_split,
};
