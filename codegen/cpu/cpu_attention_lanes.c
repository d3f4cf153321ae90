/* cpu_attention_lanes.c — the transpositions of streaming attention: queries and masks from rows in memory to vector
 * lanes, contexts from lanes to rows. */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"

#include "codegen/cpu/emit.h"

enum { MAX_LANES = 16 };

/* Pointers to `lanes` consecutive queries' rows, starting at query `first`. Lanes after the last query repeat it. */
static void query_rows(cg_emitter *e, const cg_stream *s, LLVMTypeRef element, LLVMValueRef base, LLVMValueRef stride,
                       LLVMValueRef first, LLVMValueRef *rows)
{
    for (int i = 0; i < e->target->lanes; i++) {
        LLVMValueRef query = cg_imin(e, cg_iadd(e, first, cg_int(e, i)), s->last_query);
        rows[i] = cg_at(e, element, base, cg_imul(e, query, stride));
    }
}

/* Transposes `count` columns (at most a vector) of the queries' rows, from `column` on, into lanes, and stores them
 * as rows of a scratch matrix. `read` returns a row's columns as a whole vector. */
typedef LLVMValueRef (*row_reader)(cg_emitter *e, const cg_stream *s, LLVMValueRef row, LLVMValueRef column, int count);

static void rows_to_lanes(cg_emitter *e, const cg_stream *s, LLVMValueRef *rows, LLVMValueRef column, int count,
                          row_reader read, LLVMValueRef target)
{
    LLVMValueRef transposed[MAX_LANES];
    int lanes = e->target->lanes;
    for (int i = 0; i < lanes; i++) transposed[i] = read(e, s, rows[i], column, count);
    cg_transpose(e, transposed);
    for (int i = 0; i < count; i++) {
        LLVMValueRef row = cg_iadd(e, column, cg_int(e, i));
        cg_store(e, transposed[i], cg_at(e, e->f32, target, cg_imul(e, row, cg_int(e, s->width))), cg_lanes_bytes(e));
    }
}

/* The reverse: `count` rows of a scratch matrix, times `factor` per lane, to columns in the queries' rows. */
static void lanes_to_rows(cg_emitter *e, const cg_stream *s, LLVMValueRef source, LLVMValueRef factor,
                          LLVMValueRef column, int count, LLVMValueRef *rows)
{
    LLVMValueRef transposed[MAX_LANES];
    int lanes = e->target->lanes;
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef row = cg_iadd(e, column, cg_int(e, i));
        LLVMValueRef address = cg_at(e, e->f32, source, cg_imul(e, row, cg_int(e, s->width)));
        transposed[i] = cg_const(e, cg_lanes_type(e), 0);
        if (i < count) transposed[i] = cg_fmul(e, cg_load(e, cg_lanes_type(e), address, cg_lanes_bytes(e)), factor);
    }
    int out = s->head->k->out.buffer;
    LLVMTypeRef stored = cg_stored_type(e, s->head->plan, out);
    cg_transpose(e, transposed);
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef part = cg_resize(e, transposed[i], count, 0);
        cg_store_elements(e, s->head->plan, out, part, cg_at(e, stored, rows[i], column));
    }
}

static LLVMValueRef read_floats(cg_emitter *e, LLVMValueRef row, LLVMValueRef column, int count)
{
    LLVMValueRef part = cg_load(e, cg_vector(e, e->f32, count), cg_at(e, e->f32, row, column), 0);
    return cg_resize(e, part, e->target->lanes, 0);
}

static LLVMValueRef read_scaled_query(cg_emitter *e, const cg_stream *s, LLVMValueRef row, LLVMValueRef column,
                                      int count)
{
    return cg_fmul(e, read_floats(e, row, column, count), cg_stream_scale(e, s));
}

static LLVMValueRef read_query_pairs(cg_emitter *e, const cg_stream *s, LLVMValueRef row, LLVMValueRef column,
                                     int count)
{
    return cg_resize(e, cg_query_bf16(e, s->head, row, column, count), e->target->lanes, 0);
}

void cg_load_queries(cg_emitter *e, const cg_stream *s)
{
    int lanes = e->target->lanes;
    int64_t dim = s->head->use_bf16_dot ? s->head->k->dim / 2 : s->head->k->dim, whole = dim / lanes * lanes;
    row_reader read = s->head->use_bf16_dot ? read_query_pairs : read_scaled_query;
    LLVMTypeRef stored = cg_stored_type(e, s->head->plan, s->head->k->q.buffer);
    LLVMValueRef rows[MAX_LANES];
    CG_FOR_NONEMPTY (e, group, cg_int(e, 0), cg_int(e, s->width), lanes) {
        query_rows(e, s, stored, s->head->q, s->head->q_stride, cg_iadd(e, s->first_query, group.index), rows);
        LLVMValueRef target = cg_at(e, e->f32, s->q_transposed, group.index);
        if (whole > 0)
            CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, whole), lanes)
                rows_to_lanes(e, s, rows, column.index, lanes, read, target);
        if (dim > whole) rows_to_lanes(e, s, rows, cg_int(e, whole), (int)(dim - whole), read, target);
    }
}

void cg_store_context(cg_emitter *e, const cg_stream *s, LLVMValueRef factors)
{
    int lanes = e->target->lanes;
    int64_t dim = s->head->k->value_dim, whole = dim / lanes * lanes;
    LLVMValueRef rows[MAX_LANES];
    CG_FOR_NONEMPTY (e, group, cg_int(e, 0), cg_int(e, s->width), lanes) {
        LLVMTypeRef stored = cg_stored_type(e, s->head->plan, s->head->k->out.buffer);
        query_rows(e, s, stored, s->head->out, s->head->out_stride, cg_iadd(e, s->first_query, group.index), rows);
        LLVMValueRef factor = cg_load(e, cg_lanes_type(e), cg_at(e, e->f32, factors, group.index), cg_lanes_bytes(e));
        LLVMValueRef source = cg_at(e, e->f32, s->context, group.index);
        if (whole > 0)
            CG_FOR_NONEMPTY (e, column, cg_int(e, 0), cg_int(e, whole), lanes)
                lanes_to_rows(e, s, source, factor, column.index, lanes, rows);
        if (dim > whole) lanes_to_rows(e, s, source, factor, cg_int(e, whole), (int)(dim - whole), rows);
    }
}

static LLVMValueRef read_mask(cg_emitter *e, const cg_stream *s, LLVMValueRef row, LLVMValueRef column, int count)
{
    LLVMValueRef mask = read_floats(e, row, column, count);
    return s->unit == 1 ? mask : cg_scale_mask(e, mask);
}

void cg_load_mask(cg_emitter *e, const cg_stream *s, int i)
{
    int lanes = e->target->lanes;
    LLVMValueRef rows[MAX_LANES], mask = cg_at(e, e->f32, s->head->mask[i], s->first_key);
    LLVMValueRef whole = cg_round_down(e, s->key_count, lanes);
    CG_FOR_NONEMPTY (e, group, cg_int(e, 0), cg_int(e, s->width), lanes) {
        query_rows(e, s, e->f32, mask, s->head->mask_stride[i], cg_iadd(e, s->first_query, group.index), rows);
        LLVMValueRef target = cg_at(e, e->f32, s->mask[i], group.index);
        CG_FOR (e, column, cg_int(e, 0), whole, lanes)
            rows_to_lanes(e, s, rows, column.index, lanes, read_mask, target);
    }
    /* Fewer keys than a vector remain: one element at a time. */
    CG_FOR (e, key, whole, s->key_count, 1)
        CG_FOR_NONEMPTY (e, lane, cg_int(e, 0), cg_int(e, s->width), 1) {
            LLVMValueRef query = cg_imin(e, cg_iadd(e, s->first_query, lane.index), s->last_query);
            LLVMValueRef source = cg_iadd(e, cg_imul(e, query, s->head->mask_stride[i]), key.index);
            LLVMValueRef value = cg_load(e, e->f32, cg_at(e, e->f32, mask, source), 0);
            if (s->unit != 1) value = cg_scale_mask(e, value);
            LLVMValueRef address = cg_iadd(e, cg_imul(e, key.index, cg_int(e, s->width)), lane.index);
            cg_store(e, value, cg_at(e, e->f32, s->mask[i], address), 0);
        }
}

bool cg_mask_varies_by_query(const pl_attention *k, int i)
{
    return i < k->mask_count && !ir_dim_is(k->mask[i].row_stride, 0);
}

LLVMValueRef cg_visible_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_query, int64_t width)
{
    if (!head->k->causal) return head->keys;
    LLVMValueRef end = cg_imin(e, cg_iadd(e, first_query, cg_int(e, width)), head->queries);
    return cg_iadd(e, end, cg_isub(e, head->keys, head->queries));
}
