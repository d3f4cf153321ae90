/* cuda_attention.c — softmax(scale q kᵀ + mask) v, streaming over keys.
 *
 * With matrix instructions, for a tile of 16 queries: a warp takes a head, or a slice of the keys if there are fewer
 * heads than warps, and keeps queries, scores and sums in registers. Keys and values are read directly from global
 * memory, 4 to 16 bytes per lane, without a transposition. This works because the channels of q kᵀ may be summed in any
 * order. So lane p of four takes channels 8 p … 8 p + 7 for two steps of the matmul. The result's columns may have any
 * order, too. So the lanes of column group g take channels width * g …, each of which is a separate column.
 *
 * Otherwise (f32, unusual shapes, attention within a unit): a thread takes a query and head, or one of several slices
 * of the keys, which neighbouring lanes combine by shuffles. */
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

/* ---- Shapes ------------------------------------------------------------------------------------------------------ */

/* Channels in q and k read at once by a lane: two steps or one step of the matmul. */
static int64_t key_width(const pl_attention *a) { return a->dim % 32 == 0 ? 8 : 4; }

/* Channels of v per lane. */
static int64_t value_width(const pl_attention *a) { return a->value_dim / 8; }

/* Slices per head, one warp each. */
static int64_t warp_slices(const pl_attention *a, const cu_schedule *schedule)
{
    int64_t warps = schedule->threads / CU_WARP, slices = a->heads < warps ? warps / a->heads : 1;
    int64_t bytes = a->heads * CU_ROWS * (a->value_dim + 2) * (int64_t)sizeof(float);
    while (slices > 1 && slices * bytes > MAX_WORK_BYTES) slices--;
    return slices;
}

static size_t work_bytes(const cu_step *step, const cu_layout *layout)
{
    const pl_attention *a = &step->kernel->attention;
    int64_t slices = warp_slices(a, layout->stages->schedule);
    if (!cu_is_matrix(layout, step) || slices == 1) return 0;
    return (size_t)(slices * a->heads * CU_ROWS * (a->value_dim + 2)) * sizeof(float);
}

static unsigned reads(const cu_step *step, int buffer) { return CU_BEFORE_BARRIER; }

/* ---- Addresses --------------------------------------------------------------------------------------------------- */

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

static const char *mask_index(cu_function *f, const char *batch, const char *head, const char *query, const char *key)
{
    const pl_attention *a = &f->step->kernel->attention;
    pl_heads mask = {a->mask, ir_dim_number(0), a->mask_batch, a->mask_head, a->mask_query};
    return ir_arena_printf(f->arena, "%s + %s", heads_index(f, &mask, batch, head, query), key);
}

/* Stores the value's text to channel `channel` of the result at (batch, head, row). */
static void put_result(cu_function *f, const char *batch, const char *head, const char *row, const char *channel,
                       const char *value, const char *indent)
{
    const pl_attention *a = &f->step->kernel->attention;
    const cu_placement *placement = cu_placement_of(f, a->out.buffer);
    const cu_location *locations[] = {&placement->plain, &placement->half, &placement->output};
    static const char *const names[] = {"out", "out_half", "result"};
    const char *index = heads_index(f, &a->out, batch, head, row);
    for (int k = 0; k < 3; k++)
        if (locations[k]->kind != CU_UNPLACED)
            cu_put(&f->body, "%s(%s)[%s] = %s(%s);\n", indent,
                   at_index(f, a->out.buffer, locations[k], index, names[k]), channel,
                   locations[k]->is_half ? "to_half" : "", value);
}

/* Caps the score `name` and applies the mask's element at `pointer` (NULL: no mask). */
static void put_score_end(cu_function *f, const char *name, const char *pointer, const char *indent)
{
    const pl_attention *a = &f->step->kernel->attention;
    if (a->softcap > 0) {
        const char *cap = cu_float_text(f->arena, a->softcap);
        cu_put(&f->body, "%s%s = %s * tanhf(%s / %s);\n", indent, name, cap, name, cap);
    }
    if (pointer == NULL) return;
    if (a->replaces < 0)
        cu_put(&f->body, "%sconst float masked = *(%s);\n%s%s = masked <= %s ? masked : %s + masked;\n", indent,
               pointer, indent, name, cu_float_text(f->arena, a->replaces), name);
    else
        cu_put(&f->body, "%s%s += *(%s);\n", indent, name, pointer);
}

/* ---- Matrix instructions ----------------------------------------------------------------------------------------- */

static void put_queries(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    int64_t steps = a->dim / 16, width = key_width(a), per_load = width / 4;
    cu_put(&f->body,
           "        unsigned query[%" PRId64 "][4];\n"
           "        for (int h = 0; h < 2; h++) {\n"
           "            const int i1 = t.first + min(h * 8 + lane / 4, t.count - 1);\n"
           "            const half_t *const row = %s;\n"
           "#pragma unroll\n"
           "            for (int step = 0; step < %" PRId64 "; step += %" PRId64 ") {\n"
           "                words_%" PRId64 " w;\n"
           "                load_words(&w, row + step * 16 + lane %% 4 * %" PRId64 ");\n",
           steps, operand(f, &a->q, true, "q", NULL, "head", "i1"), steps, per_load, width / 2, width);
    for (int64_t k = 0; k < per_load; k++)
        cu_put(&f->body,
               "                query[step + %" PRId64 "][h] = w.word[%" PRId64 "];\n"
               "                query[step + %" PRId64 "][h + 2] = w.word[%" PRId64 "];\n",
               k, 2 * k, k, 2 * k + 1);
    cu_put(&f->body, "            }\n        }\n");
}

/* Scores of 16 keys from `first_key` on, in the layout of accumulator fragments: score[n][i] belongs to query lane /
 * 4 + i / 2 * 8 and key 8 n + lane % 4 * 2 + i % 2. */
static void put_scores(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    int64_t steps = a->dim / 16, width = key_width(a), per_load = width / 4;
    const char *mask = NULL;
    cu_put(&f->body,
           "            float score[2][4] = {};\n"
           "#pragma unroll\n"
           "            for (int n = 0; n < 2; n++) {\n"
           "                const int key = min(first_key + n * 8 + lane / 4, keys - 1);\n"
           "                const half_t *const row = %s;\n"
           "#pragma unroll\n"
           "                for (int step = 0; step < %" PRId64 "; step += %" PRId64 ") {\n"
           "                    words_%" PRId64 " w;\n"
           "                    load_words(&w, row + step * 16 + lane %% 4 * %" PRId64 ");\n",
           operand(f, &a->k, true, "k", NULL, "kv_head", "key"), steps, per_load, width / 2, width);
    for (int64_t k = 0; k < per_load; k++)
        cu_put(&f->body, "                    tensor_mma(score[n], query[step + %" PRId64 "], w.word + %" PRId64 ");\n",
               k, 2 * k);
    cu_put(&f->body,
           "                }\n            }\n"
           "#pragma unroll\n"
           "            for (int i = 0; i < 8; i++) {\n"
           "                const int key = first_key + i / 4 * 8 + lane %% 4 * 2 + i %% 2;\n"
           "                const int i1 = t.first + min(i / 2 %% 2 * 8 + lane / 4, t.count - 1);\n"
           "                float s = score[i / 4][i %% 4] * %s;\n",
           cu_float_text(f->arena, a->scale));
    if (a->mask >= 0) {
        const char *index = mask_index(f, NULL, "head", "i1", "min(key, keys - 1)");
        mask = at_index(f, a->mask, &cu_placement_of(f, a->mask)->plain, index, "mask");
    }
    put_score_end(f, "s", mask, "                ");
    cu_put(&f->body,
           "                const bool is_seen = key < keys%s;\n"
           "                score[i / 4][i %% 4] = is_seen ? s : -INFINITE;\n            }\n",
           a->causal ? ir_arena_printf(f->arena, " && key <= i1 + keys - (%s)", cu_dim_text(f, a->queries)) : "");
}

/* Computes the softmax weights of the step's keys from the scores, as operand A of the matmul with v. Earlier sums are
 * multiplied by `shrink`. */
static void put_weights(cu_function *f)
{
    cu_put(&f->body,
           "            unsigned weight[4];\n"
           "            float shrink[2];\n"
           "#pragma unroll\n"
           "            for (int h = 0; h < 2; h++) {\n"
           "                float *const s0 = &score[0][2 * h], *const s1 = &score[1][2 * h];\n"
           "                const float most_now = fmaxf(most[h], quad_max(fmaxf(fmaxf(s0[0], s0[1]), fmaxf(s1[0], "
           "s1[1]))));\n"
           "                const float shift = most_now == -INFINITE ? 0.0f : most_now;\n"
           "                shrink[h] = exp_fast(most[h] - shift);\n"
           "                most[h] = most_now;\n"
           "                const float w0 = exp_fast(s0[0] - shift), w1 = exp_fast(s0[1] - shift);\n"
           "                const float w2 = exp_fast(s1[0] - shift), w3 = exp_fast(s1[1] - shift);\n"
           "                total[h] = total[h] * shrink[h] + (w0 + w1 + w2 + w3); // of the lane's keys alone\n"
           "                weight[h] = pack_halves(w0, w1);\n"
           "                weight[h + 2] = pack_halves(w2, w3);\n"
           "            }\n");
}

/* Values are loaded before the scores are known, so both latencies overlap. */
static void put_value_loads(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    int64_t width = value_width(a), load = width < 8 ? width : 8;
    cu_put(&f->body,
           "            words_%" PRId64 " v_rows[4][%" PRId64 "]; // of keys 2 p, 2 p + 1 and those 8 on\n"
           "#pragma unroll\n"
           "            for (int n = 0; n < 4; n++) {\n"
           "                const int key = min(first_key + n / 2 * 8 + lane %% 4 * 2 + n %% 2, keys - 1);\n"
           "                const half_t *const row = %s;\n"
           "#pragma unroll\n"
           "                for (int j = 0; j < %" PRId64 "; j++) load_words(&v_rows[n][j], row + lane / 4 * %" PRId64
           " + j * 8);\n"
           "            }\n",
           load / 2, width / load, operand(f, &a->v, true, "v", NULL, "kv_head", "key"), width / load, width);
}

/* sum[j][i] belongs to query lane / 4 + i / 2 * 8 and channel width * (lane % 4 * 2 + i % 2) + j. */
static void put_weighted_values(cu_function *f)
{
    cu_put(&f->body,
           "#pragma unroll\n"
           "            for (int j = 0; j < %" PRId64 "; j++) {\n"
           "                unsigned column[2];\n"
           "#pragma unroll\n"
           "                for (int h = 0; h < 2; h++) {\n"
           "                    const unsigned upper = v_rows[2 * h][j / 8].word[j %% 8 / 2];\n"
           "                    const unsigned lower = v_rows[2 * h + 1][j / 8].word[j %% 8 / 2];\n"
           "                    column[h] = __byte_perm(upper, lower, j %% 2 ? 0x7632 : 0x5410);\n"
           "                }\n"
           "#pragma unroll\n"
           "                for (int i = 0; i < 4; i++) sum[j][i] *= shrink[i / 2];\n"
           "                tensor_mma(sum[j], weight, column);\n"
           "            }\n",
           value_width(&f->step->kernel->attention));
}

static void put_whole_heads(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    cu_put(&f->body,
           "#pragma unroll\n"
           "        for (int h = 0; h < 2; h++) {\n"
           "            const int r = h * 8 + lane / 4, i1 = t.first + r;\n"
           "            const float scale = total[h] == 0.0f ? 0.0f : 1.0f / total[h];\n"
           "            if (r < t.count) {\n"
           "#pragma unroll\n"
           "                for (int i = 0; i < %" PRId64 "; i++) {\n"
           "                    const int channel = lane %% 4 * %" PRId64 " + i;\n"
           "                    const float value = sum[i %% %" PRId64 "][2 * h + i / %" PRId64 "] * scale;\n",
           2 * value_width(a), 2 * value_width(a), value_width(a), value_width(a));
    put_result(f, NULL, "head", "i1", "channel", "value", "                    ");
    cu_put(&f->body, "                }\n            }\n        }\n    }\n");
}

/* Combines every warp's sums, maximum scores and totals in shared memory. */
static void put_joined_heads(cu_function *f, int64_t slices)
{
    const pl_attention *a = &f->step->kernel->attention;
    int64_t pitch = a->value_dim + 2, width = value_width(a);
    cu_put(&f->body,
           "#pragma unroll\n"
           "        for (int h = 0; h < 2; h++) {\n"
           "            float *const row = shares + (item * 16 + h * 8 + lane / 4) * %" PRId64 ";\n"
           "#pragma unroll\n"
           "            for (int i = 0; i < %" PRId64 "; i++)\n"
           "                row[lane %% 4 * %" PRId64 " + i] = sum[i %% %" PRId64 "][2 * h + i / %" PRId64 "];\n"
           "            if (lane %% 4 == 0) {\n"
           "                row[%" PRId64 "] = most[h];\n"
           "                row[%" PRId64 "] = total[h];\n"
           "            }\n        }\n    }\n"
           "    __syncthreads(); // all shares are there\n"
           "    for (int i = threadIdx.x; i < t.count * %" PRId64 "; i += %d) {\n"
           "        const int channel = i %% %" PRId64 ", head = i / %" PRId64 " %% %" PRId64 ", r = i / %" PRId64
           ", i1 = t.first + r;\n"
           "        float most = -INFINITE, total = 0.0f, sum = 0.0f;\n"
           "#pragma unroll\n"
           "        for (int s = 0; s < %" PRId64 "; s++)\n"
           "            most = fmaxf(most, shares[((s * %" PRId64 " + head) * 16 + r) * %" PRId64 " + %" PRId64 "]);\n"
           "        const float shift = most == -INFINITE ? 0.0f : most;\n"
           "#pragma unroll\n"
           "        for (int s = 0; s < %" PRId64 "; s++) {\n"
           "            const float *const row = shares + ((s * %" PRId64 " + head) * 16 + r) * %" PRId64 ";\n"
           "            const float factor = exp_fast(row[%" PRId64 "] - shift);\n"
           "            total += row[%" PRId64 "] * factor;\n"
           "            sum += row[channel] * factor;\n"
           "        }\n"
           "        const float value = total == 0.0f ? 0.0f : sum / total;\n",
           pitch, 2 * width, 2 * width, width, width, a->value_dim, a->value_dim + 1, a->heads * a->value_dim,
           cu_threads(f), a->value_dim, a->value_dim, a->heads, a->heads * a->value_dim, slices, a->heads, pitch,
           a->value_dim, slices, a->heads, pitch, a->value_dim, a->value_dim + 1);
    put_result(f, NULL, "head", "i1", "channel", "value", "        ");
    cu_put(&f->body, "    }\n");
}

static void emit_tensor(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    if (f->step->distribution != CU_TILED || f->step->loop != 1 || cu_schedule_of(f)->tile_units > CU_ROWS) {
        cu_refuse(f, "attention with matrix instructions requires tiles of the length with at most %d queries",
                  CU_ROWS);
        return;
    }
    int64_t slices = warp_slices(a, cu_schedule_of(f)), width = value_width(a);
    if (slices > 1) cu_work_pointer(f, "float", "shares");
    cu_put(&f->body,
           "    const int lane = threadIdx.x %% 32, keys = %s;\n"
           "    for (int item = threadIdx.x / 32; item < %" PRId64 "; item += %d) {\n"
           "        const int head = item %% %" PRId64 ", kv_head = head / %" PRId64 ", share = item / %" PRId64 ";\n",
           cu_dim_text(f, a->keys), slices * a->heads, cu_warps(f), a->heads, a->heads / a->kv_heads, a->heads);
    put_queries(f);
    cu_put(&f->body,
           "        float sum[%" PRId64 "][4] = {}, most[2] = {-INFINITE, -INFINITE}, total[2] = {};\n"
           "#pragma unroll 2\n"
           "        for (int first_key = share * %d; first_key < keys; first_key += %" PRId64 ") {\n",
           width, KEYS, slices * KEYS);
    put_value_loads(f);
    put_scores(f);
    put_weights(f);
    put_weighted_values(f);
    cu_put(&f->body, "        }\n        for (int h = 0; h < 2; h++) total[h] = quad_sum(total[h]);\n");
    if (slices > 1)
        put_joined_heads(f, slices);
    else
        put_whole_heads(f);
}

/* ---- One thread per query and head
 * -------------------------------------------------------------------------------- */

/* Declares the batch i0 and the query i1 of row `row`. */
static void put_row(cu_function *f)
{
    const pl_attention *a = &f->step->kernel->attention;
    const cu_step *s = f->step;
    const char *queries = cu_dim_text(f, a->queries);
    if (s->distribution == CU_TILED && s->loop == 1)
        cu_put(&f->body, "        const int i0 = 0, i1 = t.first * %" PRId64 " + row;\n", s->scale);
    else if (s->distribution == CU_TILED)
        cu_put(&f->body, "        const int i0 = t.first * %" PRId64 " + row / %s, i1 = row %% %s;\n", s->scale,
               queries, queries);
    else
        cu_put(&f->body, "        const int i0 = (t.first + row) / (%s), i1 = (t.first + row) %% (%s);\n", queries,
               queries);
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

static void put_streaming(cu_function *f, int64_t slices)
{
    const pl_attention *a = &f->step->kernel->attention;
    cu_put(&f->body,
           "        float sum[%" PRId64 "] = {}, most = -INFINITE, total = 0.0f;\n"
           "        const float *const query = %s;\n"
           "        for (int key = share; key < keys; key += %" PRId64 ") {\n",
           a->value_dim, operand(f, &a->q, false, "q", "i0", "head", "i1"), slices);
    if (a->causal) cu_put(&f->body, "            if (key > i1 + keys - (%s)) continue;\n", cu_dim_text(f, a->queries));
    cu_put(&f->body,
           "            const float *const key_row = %s;\n"
           "            const float *const value_row = %s;\n"
           "            float score = 0.0f;\n"
           "            for (int d = 0; d < %" PRId64 "; d++) score += query[d] * key_row[d];\n"
           "            score *= %s;\n",
           operand(f, &a->k, false, "k", "i0", "kv_head", "key"), operand(f, &a->v, false, "v", "i0", "kv_head", "key"),
           a->dim, cu_float_text(f->arena, a->scale));
    const char *index = a->mask >= 0 ? mask_index(f, "i0", "head", "i1", "key") : NULL;
    put_score_end(f, "score",
                  index != NULL ? at_index(f, a->mask, &cu_placement_of(f, a->mask)->plain, index, "mask") : NULL,
                  "            ");
    cu_put(&f->body,
           "            if (score == -INFINITE) continue;\n"
           "            const float most_now = fmaxf(most, score);\n"
           "            const float shrink = expf(most - most_now), weight = expf(score - most_now);\n"
           "            most = most_now;\n"
           "            total = total * shrink + weight;\n"
           "#pragma unroll\n"
           "            for (int d = 0; d < %" PRId64 "; d++) sum[d] = sum[d] * shrink + weight * value_row[d];\n"
           "        }\n",
           a->value_dim);
}

/* Lanes with slices of one query's keys combine them pairwise. */
static void put_join(cu_function *f, int64_t slices)
{
    cu_put(&f->body,
           "        for (int distance = 1; distance < %" PRId64 "; distance *= 2) {\n"
           "            const float other = __shfl_xor_sync(0xffffffffu, most, distance);\n"
           "            const float both = fmaxf(most, other), shift = both == -INFINITE ? 0.0f : both;\n"
           "            const float mine = expf(most - shift), theirs = expf(other - shift);\n"
           "            most = both;\n"
           "            total = total * mine + __shfl_xor_sync(0xffffffffu, total, distance) * theirs;\n"
           "#pragma unroll\n"
           "            for (int d = 0; d < %" PRId64 "; d++)\n"
           "                sum[d] = sum[d] * mine + __shfl_xor_sync(0xffffffffu, sum[d], distance) * theirs;\n"
           "        }\n",
           slices, f->step->kernel->attention.value_dim);
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
    cu_put(&f->body,
           "    const int keys = %s, items = %s * %" PRId64 ";\n"
           "    for (int first = 0; first < items; first += %d) { // whole warps go round together\n"
           "        const int at = first + threadIdx.x, item = min(at, items - 1) / %" PRId64 ", share = at %% %" PRId64
           ";\n"
           "        const int head = item %% %" PRId64 ", kv_head = head / %" PRId64 ", row = item / %" PRId64 ";\n",
           cu_dim_text(f, a->keys), row_count(f), a->heads * slices, cu_threads(f), slices, slices, a->heads,
           a->heads / a->kv_heads, a->heads);
    put_row(f);
    put_streaming(f, slices);
    if (slices > 1) put_join(f, slices);
    cu_put(&f->body,
           "        if (at >= items || share != 0) continue;\n"
           "        const float scale = total == 0.0f ? 0.0f : 1.0f / total;\n"
           "#pragma unroll\n"
           "        for (int d = 0; d < %" PRId64 "; d++) {\n",
           a->value_dim);
    put_result(f, "i0", "head", "i1", "d", "sum[d] * scale", "            ");
    cu_put(&f->body, "        }\n    }\n");
}

static void emit(cu_function *f)
{
    if (cu_is_matrix(f->layout, f->step))
        emit_tensor(f);
    else
        emit_threads(f);
}

/* ---- In stages and memory ---------------------------------------------------------------------------------------- */

static void note_heads(cu_step_finder *f, const pl_heads *h, bool is_written, cu_range batch, int64_t heads,
                       cu_range rows, int64_t dim)
{
    cu_range position = cu_range_add(cu_offset_range(h->offset), cu_range_times(h->batch_stride, batch));
    position = cu_range_add(position, cu_range_times(h->head_stride, cu_columns_range(heads)));
    position = cu_range_add(position, cu_range_times(h->row_stride, rows));
    cu_note_access(f, h->buffer, is_written, cu_range_add(position, cu_columns_range(dim)));
}

static void note_accesses(cu_step_finder *f)
{
    const cu_step *s = f->step;
    const pl_attention *a = &s->kernel->attention;
    cu_range batch = s->space.loop[0], query = s->space.loop[1], key = s->space.loop[2];
    f->step->access_count = 0;
    note_heads(f, &a->q, false, batch, a->heads, query, a->dim);
    note_heads(f, &a->k, false, batch, a->kv_heads, key, a->dim);
    note_heads(f, &a->v, false, batch, a->kv_heads, key, a->value_dim);
    note_heads(f, &a->out, true, batch, a->heads, query, a->value_dim);
    cu_range mask =
        cu_range_add(cu_range_times(a->mask_batch, batch), cu_range_times(a->mask_head, cu_columns_range(a->heads)));
    cu_note_access(f, a->mask, false, cu_range_add(cu_range_add(mask, cu_range_times(a->mask_query, query)), key));
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
