/* precision.c — selects the buffers that images with 16-bit precision keep in 16 bits. The decision is common to all
 * backends.
 *
 * A matrix kernel rounds the factors of its products when it reads them. Therefore a buffer that only matrix kernels
 * read is stored in rounded form. A residual, which a norm also reads, stays in f32, and so do sums, statistics,
 * inputs and outputs. The results are the same whether a matrix kernel rounds a factor or reads it in rounded form,
 * because rounding twice changes nothing.
 */
#include "ir/plan/plan.h"

enum {
    FEWEST_ROWS = 8,    /* with fewer rows, most of a matrix instruction would be wasted, and f32 costs little */
    CHANNELS = 16,      /* one or two k steps of a matrix instruction; heads of other widths would need padding */
    MOST_CHANNELS = 128 /* per head, because its sums are kept in registers */
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

/* Are `elements` consecutive elements contiguous and aligned to their number? */
static bool is_aligned(const pl_heads *h, int64_t elements)
{
    return divides(elements, h->offset) && divides(elements, h->head_stride) && divides(elements, h->row_stride);
}

/* Do rows of heads fill the buffer? Then the channels of a position are in one row at every length. */
static bool fills_rows(const pl_plan *plan, const pl_heads *h, int64_t heads, int64_t dim)
{
    const ir_type *type = &plan->buffers[h->buffer].type;
    if (!ir_dim_is_number(h->offset) || !ir_dim_is_number(h->row_stride)) return false;
    if (heads > 1 && !ir_dim_is_number(h->head_stride)) return false;
    int64_t row = h->row_stride.offset, last = h->offset.offset + (heads - 1) * h->head_stride.offset + dim - 1;
    return ir_type_count_at(type, 1) == row && ir_type_count_at(type, 2) == 2 * row && h->offset.offset >= 0 &&
           last < row;
}

/* The rule is the same for every target, so that the 16-bit buffers do not depend on the image. The strictest target
 * decides: the alignments below are those of the lanes of CUDA's 16-row matrix instructions.
 *
 * It applies to self-attention of one sequence over the length. Other attentions are short (the tokens of an
 * operator) or have a fixed number of queries; they are computed in f32.
 */
static bool attention_is_matrix(const pl_plan *plan, const pl_attention *k)
{
    int64_t value_lane = k->value_dim / 8; /* channels of v per lane, for eight lanes: must be a power of two */
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

/* Factors of a matrix kernel's products are noted separately, because an epilogue may read the same buffer in f32. */
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

/* A scatter combines with existing content, so that a buffer it writes also counts as read. */
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
