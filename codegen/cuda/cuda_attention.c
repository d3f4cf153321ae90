/* cuda_attention.c — softmax(scale q kᵀ + mask) v, streaming over keys.
 *
 * With matrix instructions, for 16 queries of a tile: a warp takes a head, or a slice of the keys if there are fewer
 * heads than warps, and keeps queries, scores and sums in registers. Keys and values are read directly from global
 * memory, 4 to 16 bytes per lane, without a transposition. This works because the channels of q kᵀ may be summed in any
 * order. So lane p of four takes channels 8 p … 8 p + 7 for two steps of the matmul. The result's columns may have any
 * order, too. So the lanes of column group g take channels width * g …, each of which is a separate column.
 *
 * Otherwise (f32, unusual shapes, attention within a unit): a thread takes a query and head, or one of several slices
 * of the keys, which neighbouring lanes combine by shuffles. */
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

#include <inttypes.h>

enum {
    KEYS = 16,                 /* keys of a step with matrix instructions */
    MAX_WORK_BYTES = 32 << 10, /* memory limit for combining key slices */
    MAX_CHANNELS = 128,        /* a thread's sums are in registers */
    THREAD_SLICES = 8          /* key slices if the key count is variable */
};

/* Channels in q and k read at once by a lane: two steps or one step of the matmul. */
static int64_t key_width(const pl_attention *a) { return a->dim % 32 == 0 ? 8 : 4; }

/* Channels of v per lane. */
static int64_t value_width(const pl_attention *a) { return a->value_dim / 8; }

/* Heads of a block: all, or those of its rank among the `split` blocks of a cluster. */
static int64_t block_heads(const pl_attention *a, int split) { return (a->heads + split - 1) / split; }

/* A tile's groups of queries for matrix instructions. */
static int64_t parts(const cu_schedule *schedule) { return (schedule->tile_units + CU_ROWS - 1) / CU_ROWS; }

/* Slices per head and group of queries, one warp each. */
static int64_t warp_slices(const pl_attention *a, const cu_schedule *schedule, int split)
{
    int64_t warps = schedule->threads / CU_WARP, items = block_heads(a, split) * parts(schedule);
    int64_t slices = items < warps ? warps / items : 1;
    int64_t bytes = items * CU_ROWS * (a->value_dim + 2) * (int64_t)sizeof(float);
    while (slices > 1 && slices * bytes > MAX_WORK_BYTES) slices--;
    return slices;
}

static size_t work_bytes(const cu_step *step, const cu_layout *layout)
{
    const pl_attention *a = &step->kernel->attention;
    int split = cu_split(layout, step);
    int64_t slices = warp_slices(a, layout->stages->schedule, split);
    if (!cu_is_matrix(layout, step) || slices == 1) return 0;
    return (size_t)(slices * block_heads(a, split) * parts(layout->stages->schedule) * CU_ROWS * (a->value_dim + 2)) *
           sizeof(float);
}

static unsigned reads(const cu_step *step, int buffer) { return CU_BEFORE_BARRIER; }

/* "start + batch * … + head * … + row * …" of an operand, with zero terms omitted. */
static const char *heads_index(cu_function *f, const pl_heads *h, const char *batch, const char *head, const char *row)
{
    const struct {
        const char *variable;
        ir_dim stride;
    } terms[] = {{batch, h->batch_stride}, {head, h->head_stride}, {row, h->row_stride}};
    const char *text = cu_dim_text(f, h->offset);
    for (int k = 0; k < 3; k++)
        if (terms[k].variable != NULL && !ir_dim_is(terms[k].stride, 0))
            text =
                ir_arena_printf(f->arena, "%s + %s * (%s)", text, terms[k].variable, cu_dim_text(f, terms[k].stride));
    return text;
}

/* A pointer to channel 0; `index` is its index in the whole buffer. */
static const char *at_index(cu_function *f, int buffer, const cu_location *location, const char *index,
                            const char *name_hint)
{
    const char *pointer = cu_pointer(f, buffer, location, name_hint);
    if (location->kind == CU_SHARED && location->unit > 0)
        index = ir_arena_printf(f->arena, "%s - t.first * %" PRId64, index, location->unit);
    if (location->kind == CU_SHARED && location->pitch != location->width)
        index = ir_arena_printf(f->arena, "padded(%s, %" PRId64 ", %" PRId64 ")", index, location->width,
                                location->pitch - location->width);
    return ir_arena_printf(f->arena, "%s + (%s)", pointer, index);
}

static const char *operand(cu_function *f, const pl_heads *h, bool is_half, const char *name_hint, const char *batch,
                           const char *head, const char *row)
{
    const cu_placement *placement = cu_placement_of(f, h->buffer);
    return at_index(f, h->buffer, is_half ? &placement->half : &placement->plain, heads_index(f, h, batch, head, row),
                    name_hint);
}

/* Statements that store the value's text to channel `channel` of the result at (batch, head, row). */
static const char *result_text(cu_function *f, const char *batch, const char *head, const char *row,
                               const char *channel, const char *value, const char *indent)
{
    const pl_attention *a = &f->step->kernel->attention;
    const cu_placement *placement = cu_placement_of(f, a->out.buffer);
    const cu_location *locations[] = {&placement->plain, &placement->half, &placement->output};
    static const char *const names[] = {"out", "out_half", "result"};
    const char *index = heads_index(f, &a->out, batch, head, row), *text = "";
    for (int k = 0; k < 3; k++) {
        if (locations[k]->kind == CU_UNPLACED) continue;
        const char *element =
            ir_arena_printf(f->arena, "(%s)[%s]", at_index(f, a->out.buffer, locations[k], index, names[k]), channel);
        const char *after = ir_arena_printf(f->arena, " = %s(%s)", locations[k]->is_half ? "to_half" : "", value);
        text = ir_arena_printf(f->arena, "%s%s", text, cu_store_text(f, locations[k], element, "", after, indent));
    }
    return text;
}

/* Statements that cap the score `name` and apply each mask's element at (batch, head, query, key). */
static const char *score_end(cu_function *f, const char *name, const char *batch, const char *key, const char *indent)
{
    const pl_attention *a = &f->step->kernel->attention;
    const char *text = "";
    if (a->softcap > 0) {
        const char *cap = cu_float_text(f->arena, a->softcap);
        text = ir_arena_printf(f->arena, "%s%s = %s * tanhf(%s / %s);\n", indent, name, cap, name, cap);
    }
    for (int i = 0; i < a->mask_count; i++) {
        const pl_heads *mask = &a->mask[i];
        const char *index = ir_arena_printf(f->arena, "%s + %s", heads_index(f, mask, batch, "head", "i1"), key);
        const char *pointer = at_index(f, mask->buffer, &cu_placement_of(f, mask->buffer)->plain, index, "mask");
        text = a->replaces[i] >= 0
                   ? ir_arena_printf(f->arena, "%s%s%s += *(%s);\n", text, indent, name, pointer)
                   : ir_arena_printf(
                         f->arena,
                         "%s%sconst float masked%d = *(%s);\n%s%s = masked%d <= %s ? masked%d : %s + masked%d;\n", text,
                         indent, i, pointer, indent, name, i, cu_float_text(f->arena, a->replaces[i]), i, name, i);
    }
    return text;
}

static const char *number(cu_function *f, int64_t value) { return cu_integer_text(f->arena, value); }

static const char *query_words(cu_function *f, int64_t count)
{
    const char *text = "";
    for (int64_t k = 0; k < count; k++)
        text = ir_arena_printf(f->arena,
                               "%s                query[step + %" PRId64 "][h] = w.word[%" PRId64 "];\n"
                               "                query[step + %" PRId64 "][h + 2] = w.word[%" PRId64 "];\n",
                               text, k, 2 * k, k, 2 * k + 1);
    return text;
}

static const char *score_words(cu_function *f, int64_t count)
{
    const char *text = "";
    for (int64_t k = 0; k < count; k++)
        text = ir_arena_printf(
            f->arena, "%s                    tensor_mma(score[n], query[step + %" PRId64 "], w.word + %" PRId64 ");\n",
            text, k, 2 * k);
    return text;
}

static void emit_tensor(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    if (f->step->distribution != CU_TILED || f->step->loop != 1) {
        cu_refuse(f, "attention with matrix instructions requires tiles of the length");
        return;
    }
    int split = cu_split(f->layout, f->step);
    int64_t slices = warp_slices(a, cu_schedule_of(f), split), heads = block_heads(a, split);
    int64_t groups = parts(cu_schedule_of(f));
    int64_t width = value_width(a), load = width < 8 ? width : 8;
    const char *rank = split > 1 ? ir_arena_printf(f->arena, " * %d + cluster_rank()", split) : "";
    const char *beyond = a->heads % split != 0
                             ? ir_arena_printf(f->arena, "        if (head >= %" PRId64 ") continue;\n", a->heads)
                             : "";
    if (slices > 1) cu_work_pointer(f, "float", "shares");
    /* in the order in which the kernel declares the pointers */
    const char *q = operand(f, &a->q, true, "q", NULL, "head", "i1");
    const char *v = operand(f, &a->v, true, "v", NULL, "kv_head", "key");
    const char *k = operand(f, &a->k, true, "k", NULL, "kv_head", "key");
    const char *end = score_end(f, "s", NULL, "min(key, keys - 1)", "                ");
    const cu_term keys[] = {
        {"KEYS", cu_dim_text(f, a->keys)},
        {"ITEMS", number(f, slices * groups * heads)},
        {"PARTS", number(f, groups)},
        {"PART_HEADS", number(f, groups * heads)},
        {"WARPS", number(f, cu_warps(f))},
        {"HEADS", number(f, heads)},
        {"RANK", rank},
        {"BEYOND", beyond},
        {"GROUP", number(f, a->heads / a->kv_heads)},
        {"STEPS", number(f, a->dim / 16)},
        {"STEPS_PER_LOAD", number(f, key_width(a) / 4)},
        {"KEY_WORDS", number(f, key_width(a) / 2)},
        {"KEY_WIDTH", number(f, key_width(a))},
        {"KEY_STEP", number(f, slices * KEYS)},
        {"WIDTH", number(f, width)},
        {"VALUE_WORDS", number(f, load / 2)},
        {"VALUE_LOADS", number(f, width / load)},
        {"QUERY_WORDS", query_words(f, key_width(a) / 4)},
        {"SCORE_WORDS", score_words(f, key_width(a) / 4)},
        {"SCALE", cu_float_text(f->arena, a->scale)},
        {"CAUSAL",
         a->causal ? ir_arena_printf(f->arena, " && key <= i1 + keys - (%s)", cu_dim_text(f, a->queries)) : ""},
        {"Q", q},
        {"V", v},
        {"K", k},
        {"SCORE_END", end},
        {0}};
    cu_put_template(&f->body, cu_attention_tensor, keys);
    const cu_term result[] = {{"WIDTH", number(f, width)},
                              {"LANE_CHANNELS", number(f, 2 * width)},
                              {"PITCH", number(f, a->value_dim + 2)},
                              {"MOST", number(f, a->value_dim)},
                              {"TOTAL", number(f, a->value_dim + 1)},
                              {"VALUE_DIM", number(f, a->value_dim)},
                              {"ROW_CHANNELS", number(f, heads * a->value_dim)},
                              {"HEADS", number(f, heads)},
                              {"RANK", rank},
                              {"BEYOND", beyond},
                              {"SLICES", number(f, slices)},
                              {"ROWS", number(f, groups * CU_ROWS)},
                              {"THREADS", number(f, cu_threads(f))},
                              {"RESULT", result_text(f, NULL, "head", "i1", "channel", "value",
                                                     slices > 1 ? "        " : "                    ")},
                              {0}};
    cu_put_template(&f->body, slices > 1 ? cu_attention_shares : cu_attention_heads, result);
}

/* The batch and the query of row `row`. */
static void row_place(cu_function *f, const char **out_batch, const char **out_query)
{
    const cu_step *s = f->step;
    const char *queries = cu_dim_text(f, s->kernel->attention.queries);
    if (s->distribution == CU_TILED && s->loop == 1) {
        *out_batch = "0";
        *out_query = ir_arena_printf(f->arena, "t.first * %" PRId64 " + row", s->scale);
    } else if (s->distribution == CU_TILED) {
        *out_batch = ir_arena_printf(f->arena, "t.first * %" PRId64 " + row / %s", s->scale, queries);
        *out_query = ir_arena_printf(f->arena, "row %% %s", queries);
    } else {
        *out_batch = ir_arena_printf(f->arena, "(t.first + row) / (%s)", queries);
        *out_query = ir_arena_printf(f->arena, "(t.first + row) %% (%s)", queries);
    }
}

static const char *row_count(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    const cu_step *s = f->step;
    if (s->distribution == CU_FREE) return "t.count";
    if (s->distribution == CU_SINGLE) return ir_arena_printf(f->arena, "%" PRId64, a->batch.offset * a->queries.offset);
    int64_t queries = s->loop == 1 ? 1 : a->queries.offset;
    return ir_arena_printf(f->arena, "t.count * %" PRId64, s->scale * queries);
}

static void emit_threads(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    bool is_short = ir_dim_is_number(a->keys) && a->keys.offset <= 32;
    int64_t slices = is_short ? 1 : THREAD_SLICES;
    if (a->value_dim > MAX_CHANNELS) {
        cu_refuse(f, "attention with %" PRId64 " channels per head; at most %d fit a thread's registers", a->value_dim,
                  MAX_CHANNELS);
        return;
    }
    const char *batch, *query, *queries = cu_dim_text(f, a->queries);
    row_place(f, &batch, &query);
    const char *q = operand(f, &a->q, false, "q", "i0", "head", "i1");
    const char *v = operand(f, &a->v, false, "v", "i0", "kv_head", "key");
    const char *k = operand(f, &a->k, false, "k", "i0", "kv_head", "key");
    const char *end = score_end(f, "score", "i0", "key", "            ");
    const cu_term terms[] = {
        {"KEYS", cu_dim_text(f, a->keys)},
        {"ROWS", row_count(f)},
        {"ITEMS_PER_ROW", number(f, a->heads * slices)},
        {"THREADS", number(f, cu_threads(f))},
        {"SLICES", number(f, slices)},
        {"HEADS", number(f, a->heads)},
        {"GROUP", number(f, a->heads / a->kv_heads)},
        {"BATCH", batch},
        {"QUERY", query},
        {"DIM", number(f, a->dim)},
        {"VALUE_DIM", number(f, a->value_dim)},
        {"SCALE", cu_float_text(f->arena, a->scale)},
        {"CAUSAL",
         a->causal ? ir_arena_printf(f->arena, "            if (key > i1 + keys - (%s)) continue;\n", queries) : ""},
        {"Q", q},
        {"V", v},
        {"K", k},
        {"SCORE_END", end},
        {"RESULT", result_text(f, "i0", "head", "i1", "d", "sum[d] * scale", "            ")},
        {0}};
    cu_put_template(&f->body, cu_attention_threads, terms);
    if (slices > 1) cu_put_template(&f->body, cu_attention_join, terms);
    cu_put_template(&f->body, cu_attention_store, terms);
}

static void emit(cu_function *f)
{
    if (cu_is_matrix(f->layout, f->step))
        emit_tensor(f);
    else
        emit_threads(f);
}

static void note_heads(cu_step_finder *f, const pl_heads *h, bool is_written, cu_range batch, int64_t heads,
                       cu_range rows, cu_range columns)
{
    cu_range position = cu_range_add(cu_offset_range(h->offset), cu_range_times(h->batch_stride, batch));
    position = cu_range_add(position, cu_range_times(h->head_stride, cu_columns_range(heads)));
    position = cu_range_add(position, cu_range_times(h->row_stride, rows));
    cu_note_access(f, h->buffer, is_written, cu_range_add(position, columns));
}

static void note_accesses(cu_step_finder *f)
{
    const cu_step *s = f->step;
    const pl_attention *a = &s->kernel->attention;
    cu_range batch = s->space.loop[0], query = s->space.loop[1], key = s->space.loop[2];
    f->step->access_count = 0;
    note_heads(f, &a->q, false, batch, a->heads, query, cu_columns_range(a->dim));
    note_heads(f, &a->k, false, batch, a->kv_heads, key, cu_columns_range(a->dim));
    note_heads(f, &a->v, false, batch, a->kv_heads, key, cu_columns_range(a->value_dim));
    note_heads(f, &a->out, true, batch, a->heads, query, cu_columns_range(a->value_dim));
    for (int i = 0; i < a->mask_count; i++) note_heads(f, &a->mask[i], false, batch, a->heads, query, key);
}

static void distribution(cu_step_finder *f, const pl_attention *a)
{
    cu_step *s = f->step;
    const ir_dim extents[] = {a->batch, a->queries, a->keys};
    s->space.loop_count = 3;
    for (int k = 0; k < 3; k++) s->space.loop[k] = cu_extent_range(extents[k], f->stages->plan->max_length);
    bool may_tile = !f->is_one_block;
    if (may_tile && ir_dim_is(a->batch, 1) && cu_is_units(a->queries)) cu_tile_loop(f, s->loop = 1, a->queries);
    if (may_tile && cu_is_units(a->batch) && ir_dim_is_number(a->queries)) cu_tile_loop(f, s->loop = 0, a->batch);
    note_accesses(f);
    if (s->distribution == CU_TILED && cu_writes_locally(s)) return;
    bool is_small = ir_dim_is_number(a->batch) && ir_dim_is_number(a->queries) &&
                    (f->is_one_block || a->batch.offset * a->queries.offset < CU_MIN_FREE_ROWS);
    s->distribution = is_small ? CU_SINGLE : CU_FREE;
    s->loop = -1;
    s->scale = 1;
    for (int k = 0; k < 3; k++) s->space.loop[k] = cu_extent_range(extents[k], f->stages->plan->max_length);
    note_accesses(f);
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    if (cu_add_step(f, kernel, CU_WHOLE) == NULL) return false;
    distribution(f, &kernel->attention);
    return true;
}

static void visit_strides(const pl_kernel *kernel, cu_stride_visitor *visitor)
{
    const pl_attention *a = &kernel->attention;
    cu_visit_heads(visitor, &a->q, a->dim);
    cu_visit_heads(visitor, &a->k, a->dim);
    cu_visit_heads(visitor, &a->v, a->value_dim);
    cu_visit_heads(visitor, &a->out, a->value_dim);
}

static const char *print_row_count(cu_function *f, const pl_kernel *kernel)
{
    return ir_arena_printf(f->arena, "%s * %s", cu_dim_text(f, kernel->attention.batch),
                           cu_dim_text(f, kernel->attention.queries));
}

const cu_step_kind cu_attention_kind = {
    .find_steps = find_steps,
    .visit_strides = visit_strides,
    .row_count = print_row_count,
    .work_bytes = work_bytes,
    .reads = reads,
    .emit = emit,
};
