/* precision.c — which buffers are kept in 16 bits, where an image computes in 16 bits: one decision for every backend.
 *
 * A matrix kernel rounds the factors of its products as it reads them. So a buffer that only matrix kernels read holds
 * no more than the rounded values, and is kept so; a residual, which a norm reads as well, stays whole, as do sums,
 * statistics and what the caller gives and gets. Rounding changes no result twice: whether a matrix kernel rounds what
 * it reads or finds it rounded is the same.
 */
#include "ir/plan/plan.h"

enum {
    FEWEST_ROWS = 8,    /* below, most of a matrix instruction would be wasted, and what f32 costs is little */
    CHANNELS = 16,      /* a step of k of a matrix instruction, or two: heads of other widths would need padding */
    MOST_CHANNELS = 128 /* of a head: its sums live in registers */
};

static bool divides(int64_t divisor, ir_dim d)
{
    return d.scale % divisor == 0 && d.offset % divisor == 0;
}

static bool is_made(const pl_plan *plan, int buffer)
{
    pl_buffer_kind kind = plan->buffers[buffer].kind;
    return kind == PL_SCRATCH || kind == PL_OUTPUT;
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static bool linear_is_matrix(const pl_linear *k)
{
    return !ir_dim_is_number(k->rows) || k->rows.offset >= FEWEST_ROWS;
}

/* `elements` at a time lie together, aligned as such. */
static bool is_aligned(const pl_heads *h, int64_t elements)
{
    return divides(elements, h->offset) && divides(elements, h->head_stride) && divides(elements, h->row_stride);
}

/* Rows of heads make up the buffer: a position's channels are in one row, whatever the length. */
static bool fills_rows(const pl_plan *plan, const pl_heads *h, int64_t heads, int64_t dim)
{
    const ir_type *type = &plan->buffers[h->buffer].type;
    if (!ir_dim_is_number(h->offset) || !ir_dim_is_number(h->row_stride)) return false;
    if (heads > 1 && !ir_dim_is_number(h->head_stride)) return false;
    int64_t row = h->row_stride.offset, last = h->offset.offset + (heads - 1) * h->head_stride.offset + dim - 1;
    return ir_type_count_at(type, 1) == row && ir_type_count_at(type, 2) == 2 * row && h->offset.offset >= 0 &&
           last < row;
}

/* The same for every target: the strictest one decides, CUDA's 16-row matrix instructions, whose lanes the alignments
 * below are of, so that what is kept in 16 bits does not depend on the image.
 *
 * Self-attention of one sequence over the length. Others are short (the tokens of an operator), or their queries are a
 * fixed number: they are computed in f32. */
static bool attention_is_matrix(const pl_plan *plan, const pl_attention *k)
{
    int64_t value_lane = k->value_dim / 8; /* channels of v to each of eight lanes: a power of two */
    bool is_sequence = ir_dim_is(k->batch, 1) && k->queries.scale == 1 && k->queries.offset == 0;
    bool is_even = k->dim % CHANNELS == 0 && k->value_dim % CHANNELS == 0 && (value_lane & (value_lane - 1)) == 0;
    if (!is_sequence || !is_even || k->dim > MOST_CHANNELS || k->value_dim > MOST_CHANNELS) return false;
    if (!is_made(plan, k->q.buffer) || !is_made(plan, k->k.buffer) || !is_made(plan, k->v.buffer)) return false;
    int64_t key_elements = k->dim % (2 * CHANNELS) == 0 ? 8 : 4, value_elements = value_lane < 8 ? value_lane : 8;
    return is_aligned(&k->q, key_elements) && is_aligned(&k->k, key_elements) && is_aligned(&k->v, value_elements) &&
           fills_rows(plan, &k->out, k->heads, k->value_dim);
}

bool pl_is_matrix(const pl_plan *plan, const pl_kernel *kernel)
{
    switch (kernel->kind) {
    case PL_LINEAR:
        return linear_is_matrix(&kernel->linear);
    case PL_ATTENTION:
        return attention_is_matrix(plan, &kernel->attention);
    case PL_NORM:
    case PL_NEST:
    case PL_SEQUENTIAL:
    case PL_RECURRENCE:
        break;
    }
    return false;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

static void note_read(void *user, int buffer, bool is_written)
{
    const pl_plan *plan = user;
    if (!is_written) plan->buffers[buffer].reads |= PL_READ_WHOLE;
}

/* The factors of a matrix kernel's products apart: an epilogue may read the same buffer whole. */
static void note_factor(const pl_plan *plan, int buffer)
{
    plan->buffers[buffer].reads |= PL_READ_HALF;
}

static void note_matrix_reads(pl_plan *plan, const pl_kernel *kernel)
{
    pl_kernel rest = *kernel;
    if (kernel->kind == PL_LINEAR) {
        note_factor(plan, kernel->linear.a.buffer);
        note_factor(plan, kernel->linear.weight);
        rest.linear.a.buffer = rest.linear.weight = -1;
    } else {
        note_factor(plan, kernel->attention.q.buffer);
        note_factor(plan, kernel->attention.k.buffer);
        note_factor(plan, kernel->attention.v.buffer);
        rest.attention.q.buffer = rest.attention.k.buffer = rest.attention.v.buffer = -1;
    }
    pl_kernel_visit_buffers(&rest, note_read, plan);
}

/* A scatter combines with what is there, so that what such a kernel writes it reads, too. */
static void note_use(void *user, int buffer, bool is_written)
{
    (void)is_written;
    note_read(user, buffer, false);
}

void pl_decide_precision(pl_plan *plan)
{
    for (int b = 0; b < plan->buffer_count; b++) plan->buffers[b].reads = 0;
    for (int k = 0; k < plan->kernel_count; k++) {
        const pl_kernel *kernel = &plan->kernels[k];
        if (pl_is_matrix(plan, kernel))
            note_matrix_reads(plan, kernel);
        else
            pl_kernel_visit_buffers(kernel, kernel->kind == PL_SEQUENTIAL ? note_use : note_read, plan);
    }
}
