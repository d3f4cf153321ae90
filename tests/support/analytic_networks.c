/* analytic_networks.c — see analytic_networks.h. */
#include "tests/support/analytic_networks.h"
#include "tests/support/predict_fixture.h"

#include <string.h>

enum { MOST = 64, MOST_INPUTS = 2, HEADS = 4, EXPERTS = 8 };

typedef struct network {
    mdot_job_operator operators[MOST];
    uint32_t inputs[MOST][MOST_INPUTS];
    uint32_t count, block;
    double tokens, width;
} network;

/* Appends an operator that reads `first` and `second` (-1: none) and writes `columns` numbers for each token. */
static mdot_job_operator *put(network *n, const char *type, int first, int second, double columns)
{
    mdot_job_operator *op = &n->operators[n->count];
    *op = (mdot_job_operator){.struct_size = sizeof *op, .type = type, .known = true, .block = n->block};
    op->inputs = n->inputs[n->count];
    if (first >= 0) n->inputs[n->count][op->input_count++] = (uint32_t)first;
    if (second >= 0) n->inputs[n->count][op->input_count++] = (uint32_t)second;
    double read = 4 * n->tokens * n->width * (double)(op->input_count > 0 ? op->input_count : 1);
    for (int phase = 0; phase < 2; phase++)
        op->per_sample[phase] = (mdot_load){n->tokens * columns * (3 + phase), read, 4 * n->tokens * columns};
    op->setting[MDOT_SETTING_INPUTS] = (int64_t)op->input_count;
    n->count++;
    return op;
}

static int last(const network *n) { return (int)n->count - 1; }

/* A matmul of `count` matrices; `is_frozen` ones have no weight gradient. */
static mdot_job_operator *put_matmul(network *n, const char *type, int input, double rows, double columns, double count,
                                     bool is_frozen)
{
    mdot_job_operator *op = put(n, type, input, -1, columns);
    double parameters = rows * columns * count;
    op->setting[MDOT_SETTING_CHANNELS_IN] = (int64_t)rows;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)columns;
    op->setting[MDOT_SETTING_GROUPS] = (int64_t)count;
    op->setting[MDOT_SETTING_SIZE_IN] = op->setting[MDOT_SETTING_SIZE_OUT] = (int64_t)n->tokens;
    *(is_frozen ? &op->frozen_parameters : &op->parameters) = parameters;
    double flops = 2 * n->tokens * rows * columns;
    for (int phase = 0; phase < (is_frozen ? 2 : 3); phase++) op->per_sample[phase].flops = flops;
    if (!is_frozen)
        op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){flops, 4 * n->tokens * (rows + columns), 0};
    op->per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * parameters;
    op->per_step[MDOT_PHASE_DATA_GRADIENT].bytes_read = 4 * parameters;
    if (!is_frozen) op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * parameters;
    return op;
}

static void put_norm(network *n, const char *type, int input)
{
    mdot_job_operator *op = put(n, type, input, -1, n->width);
    op->parameters = 2 * n->width;
    op->setting[MDOT_SETTING_AXIS] = 1;
    op->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){n->width, 0, 8 * n->width};
}

static void put_attention(network *n, int input)
{
    mdot_job_operator *op = put(n, "Attention", input, -1, n->width);
    op->setting[MDOT_SETTING_HEADS] = HEADS;
    op->setting[MDOT_SETTING_HEAD_SIZE] = (int64_t)(n->width / HEADS);
    op->setting[MDOT_SETTING_QUERIES] = op->setting[MDOT_SETTING_KEYS] = (int64_t)n->tokens;
    op->per_sample[MDOT_PHASE_FORWARD].flops = n->tokens * n->tokens * (4 * n->width + 5.0 * HEADS);
    op->per_sample[MDOT_PHASE_FORWARD].bytes_read = 12 * n->tokens * n->width;
    op->per_sample[MDOT_PHASE_DATA_GRADIENT] = op->per_sample[MDOT_PHASE_FORWARD];
}

/* A table (perhaps with sparse gradients), two attention blocks, a head and a loss. */
static void put_language_model(network *n, bool is_sparse, bool has_tied_head, bool is_frozen)
{
    enum { WORDS = 1000 };
    n->tokens = 96;
    n->width = 64;
    mdot_job_operator *table = put(n, "Gather", -1, -1, n->width);
    table->parameters = WORDS * n->width;
    table->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)n->width;
    table->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] =
        (mdot_load){n->tokens, 4 * n->tokens, is_sparse ? 4 * n->tokens : 0};
    if (!is_sparse) table->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * table->parameters;
    for (n->block = 1; n->block <= 2; n->block++) {
        int start = last(n);
        put_norm(n, "LayerNormalization", start);
        put_matmul(n, "Linear", last(n), n->width, 3 * n->width, 1, is_frozen)->setting[MDOT_SETTING_BIAS] = 1;
        put_attention(n, last(n));
        put_matmul(n, "Linear", last(n), n->width, n->width, 1, is_frozen);
        put(n, "Add", start, last(n), n->width);
        int middle = last(n);
        put_norm(n, "LayerNormalization", middle);
        put_matmul(n, "Linear", last(n), n->width, 4 * n->width, 1, is_frozen);
        put(n, "Gelu", last(n), -1, 4 * n->width);
        put_matmul(n, "Linear", last(n), 4 * n->width, n->width, 1, false);
        put(n, "Add", middle, last(n), n->width);
    }
    n->block = 0;
    put_norm(n, "LayerNormalization", last(n));
    mdot_job_operator *head = put_matmul(n, "Linear", last(n), n->width, WORDS, 1, false);
    if (has_tied_head) head->parameters = 0;
    put(n, "SoftmaxCrossEntropyLoss", last(n), -1, 1)->per_sample[MDOT_PHASE_FORWARD].bytes_written = 4;
}

/* Convolutions (some with one channel per group), a shortcut and a head. */
static void put_images(network *n, bool is_recomputed)
{
    n->tokens = 28 * 28;
    n->width = 32;
    for (n->block = 1; n->block <= 3; n->block++) {
        int start = last(n);
        for (int k = 0; k < 2; k++) {
            mdot_job_operator *op = put_matmul(n, "Conv", last(n), n->width, k == 0 ? n->width : 9, 1, false);
            op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)n->width;
            op->setting[MDOT_SETTING_KERNEL_H] = op->setting[MDOT_SETTING_KERNEL_W] = k == 0 ? 1 : 3;
            op->setting[MDOT_SETTING_GROUPS] = k == 0 ? 1 : (int64_t)n->width;
            put_norm(n, "BatchNormalization", last(n));
            put(n, "Relu", last(n), -1, n->width);
        }
        if (start >= 0) put(n, "Add", start, last(n), n->width);
        if (is_recomputed && n->block == 2)
            for (int i = start + 1; i < (int)n->count; i++) n->operators[i].flags = MDOT_OPERATOR_RECOMPUTED;
    }
    n->block = 0;
    put(n, "GlobalAveragePool", last(n), -1, 1);
    put_matmul(n, "Linear", last(n), n->width, 10, 1, false)->setting[MDOT_SETTING_BIAS] = 1;
}

/* Two blocks of a router and experts. */
static void put_mixture(network *n)
{
    n->tokens = 40;
    n->width = 64;
    put_matmul(n, "Linear", -1, n->width, n->width, 1, false);
    for (n->block = 1; n->block <= 2; n->block++) {
        int start = last(n);
        put_matmul(n, "Linear", start, n->width, EXPERTS, 1, false);
        put(n, "TopK", last(n), -1, 2);
        int choice = last(n);
        put(n, "Gather", start, choice, n->width)->traits.traits = MDOT_TRAIT_PICKS;
        put_matmul(n, "MatMul", last(n), n->width, 2 * n->width, EXPERTS, false);
        put(n, "Silu", last(n), -1, 2 * n->width);
        put_matmul(n, "MatMul", last(n), 2 * n->width, n->width, EXPERTS, false);
        put(n, "Gather", choice, last(n), n->width)->traits.traits = MDOT_TRAIT_PICKS;
        put(n, "Add", start, last(n), n->width);
    }
    n->block = 0;
    put_matmul(n, "Linear", last(n), n->width, 12, 1, false);
}

const char *const analytic_names[ANALYTIC_NETWORKS] = {"language", "tied",       "sparse",  "adapted",
                                                       "images",   "recomputed", "mixture", "flat"};

mdot_job *analytic_network(int which)
{
    static network n;
    memset(&n, 0, sizeof n);
    if (which < 4) put_language_model(&n, which == 2, which == 1, which == 3);
    if (which == 4 || which == 5) put_images(&n, which == 5);
    if (which == 6) put_mixture(&n);
    if (which == 7) {
        put_language_model(&n, false, false, false);
        for (uint32_t i = 0; i < n.count; i++) n.operators[i].block = 0;
        n.operators[3].flags = MDOT_OPERATOR_STOPS_GRADIENT;
    }
    return predict_make_job(n.operators, n.count);
}
