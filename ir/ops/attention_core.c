/* attention_core.c — scaled dot product attention in double; see attention.h. One row of scores at a time. */
#include "ir/ops/attention.h"

#include <math.h>

ir_heads ir_heads_of_4d(double *data, int64_t heads, int64_t rows, int64_t channels)
{
    return (ir_heads){data, heads * rows * channels, rows * channels, channels};
}

ir_heads ir_heads_of_3d(double *data, int64_t heads, int64_t rows, int64_t channels)
{
    return (ir_heads){data, heads * rows * channels, channels, heads * channels};
}

ir_attention_mask ir_attention_mask_of(const ir_wide *tensor)
{
    ir_attention_mask mask = {.tensor = tensor, .width = tensor->dims[tensor->rank - 1]};
    ir_broadcast_strides(tensor->rank, tensor->dims, 4, mask.stride);
    mask.stride[3] = 1; /* even if it is one key wide, because further keys are masked and the mask is not repeated */
    return mask;
}

/* The masks' sum for one key's score. */
static double bias_of_key(const ir_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t index[4] = {b, h, i, j};
    int64_t behind = i + (a->offset_by_count ? a->key_counts[b] - a->queries : a->offset) - j;
    bool masked = (a->left_window >= 0 && behind > a->left_window) ||
                  (a->right_window >= 0 && -behind > a->right_window) ||
                  (a->key_counts != NULL && j >= a->key_counts[b]) || (a->keep.tensor != NULL && j >= a->keep.width) ||
                  (a->bias.tensor != NULL && j >= a->bias.width);
    if (!masked && a->keep.tensor != NULL) masked = a->keep.tensor->i[ir_dot_index(4, index, a->keep.stride)] == 0;
    double bias = a->causal && behind < 0 ? -INFINITY : masked ? a->masked : 0;
    if (a->bias.tensor != NULL && j < a->bias.width) bias += a->bias.tensor->f[ir_dot_index(4, index, a->bias.stride)];
    return bias;
}

static double dot(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t d = 0; d < count; d++) sum += x[d] * y[d];
    return sum;
}

/* A score as f32 rounds it beside an additive mask: -1e9 absorbs the scores of a row, or leaves multiples of 64. */
static double masked_score(double score, double bias, bool rounds)
{
    return rounds && bias != 0 ? (float)((double)(float)score + bias) : score + bias;
}

/* Adds all masks but the last to a score, whose bias becomes the last. */
static void add_masks(const ir_attention *a, const int64_t index[4], double *score, double *bias)
{
    if (a->replaces[0] < 0 && *bias <= a->replaces[0]) *score = 0;
    for (int i = 0; i < 2 && a->more[i].tensor != NULL; i++) {
        double next = a->more[i].tensor->f[ir_dot_index(4, index, a->more[i].stride)];
        bool replaces = a->replaces[i + 1] < 0 && next <= a->replaces[i + 1];
        *score = replaces ? 0 : masked_score(*score, *bias, a->rounds);
        if (replaces || *bias != -INFINITY) *bias = next;
    }
}

/* Replaces the scores by softmax(scores + bias); zeros if the bias masks every key. */
static void probabilities(double *score, const double *bias, bool rounds, int64_t count)
{
    double greatest = -INFINITY, sum = 0;
    bool is_masked = true;
    for (int64_t j = 0; j < count; j++) {
        score[j] = masked_score(score[j], bias[j], rounds);
        is_masked = is_masked && bias[j] == -INFINITY;
        greatest = fmax(greatest, score[j]);
    }
    for (int64_t j = 0; j < count; j++) sum += exp(score[j] - greatest);
    for (int64_t j = 0; j < count; j++) score[j] = is_masked ? 0 : exp(score[j] - greatest) / sum;
}

/* Computes scores and result of query i; `score` and `bias` hold one row each. */
static void attend_query(const ir_attention *a, int64_t b, int64_t h, int64_t i, double *score, double *bias)
{
    int64_t kv = h / (a->heads / a->kv_heads);
    const double *q = a->q.data + b * a->q.batch + h * a->q.head + i * a->q.row;
    const double *k = a->k.data + b * a->k.batch + kv * a->k.head;
    const double *v = a->v.data + b * a->v.batch + kv * a->v.head;
    double *out = a->out.data + b * a->out.batch + h * a->out.head + i * a->out.row;
    double *kept = a->scores != NULL ? a->scores + ((b * a->heads + h) * a->queries + i) * a->keys : NULL;
    for (int64_t j = 0; j < a->keys; j++) {
        double raw = a->scale * dot(q, k + j * a->k.row, a->dim);
        score[j] = a->softcap > 0 ? a->softcap * tanh(raw / a->softcap) : raw;
        bias[j] = bias_of_key(a, b, h, i, j);
        add_masks(a, (int64_t[]){b, h, i, j}, &score[j], &bias[j]);
        if (kept == NULL) continue;
        kept[j] = a->stage == IR_SCORE_RAW ? raw : a->stage == IR_SCORE_CAPPED ? score[j] : score[j] + bias[j];
    }
    probabilities(score, bias, a->rounds, a->keys);
    for (int64_t d = 0; d < a->value_dim; d++) out[d] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        for (int64_t d = 0; d < a->value_dim; d++) out[d] += score[j] * v[j * a->v.row + d];
        if (kept != NULL && a->stage == IR_SCORE_PROBABILITY) kept[j] = score[j];
    }
}

mdot_status ir_attend(const ir_attention *request, ir_arena *arena, const ir_node *node, mdot_error *err)
{
    ir_attention rounded = *request;
    rounded.rounds = request->bias.tensor != NULL && ir_node_int(node, IR_EVALUATED_IN_F32, 0) != 0;
    const ir_attention *a = &rounded;
    double *score = IR_NEW_ARRAY(arena, double, a->keys), *bias = IR_NEW_ARRAY(arena, double, a->keys);
    if (score == NULL || bias == NULL) return ir_fail_memory(node, err);
    for (int64_t b = 0; b < a->batch; b++) {
        if (a->key_counts != NULL && (a->key_counts[b] < 0 || a->key_counts[b] > a->keys))
            return ir_fail(node, err, MDOT_OUT_OF_RANGE, "the length of sequence %lld is %lld, but there are %lld keys",
                           (long long)b, (long long)a->key_counts[b], (long long)a->keys);
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->queries; i++) attend_query(a, b, h, i, score, bias);
    }
    return MDOT_OK;
}

double ir_attention_flops(double batch, double heads, double queries, double keys, double dim, double value_dim)
{
    return batch * heads * queries * keys * (2 * dim + 2 * value_dim + 5);
}
