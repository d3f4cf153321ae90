/* rotary.c — RotaryEmbedding (ONNX opset 23): rotates pairs of channels by angles that depend on the token's
 * position. */
#include "ir/ops/operands.h"

enum { X, COS, SIN, POSITIONS }; /* inputs */

typedef struct geometry {
    ir_type type; /* type of input and output */
    ir_dim batch, heads, rows;
    int64_t channels, rotated; /* channels per head, and leading channels that are rotated */
} geometry;

/* Head size, and rotated channels per head, an even number. */
static mdot_status read_channels(const ir_operands *args, geometry *g)
{
    ir_dim channels = g->type.dim[g->type.rank - 1];
    int64_t heads = ir_node_int(args->node, "num_heads", 0);
    if (g->type.rank == 3) {
        if (heads <= 0 || !ir_dim_div_exact(channels, ir_dim_number(heads), &channels))
            return ir_malformed(args, "its channels are not divisible into num_heads %lld", (long long)heads);
        g->heads = ir_dim_number(heads);
    }
    if (!ir_dim_is_number(channels)) return ir_unsupported(args, "the size of its heads is not fixed");
    g->channels = channels.offset;
    g->rotated = ir_node_int(args->node, "rotary_embedding_dim", 0);
    if (g->rotated == 0) g->rotated = g->channels;
    if (g->rotated > 0 && g->rotated <= g->channels && g->rotated % 2 == 0) return MDOT_OK;
    return ir_malformed(args, "%lld of %lld channels cannot be rotated in pairs", (long long)g->rotated,
                        (long long)g->channels);
}

/* A cache holds half of the rotated channels, by position. If position ids are absent, it is by batch and row. */
static mdot_status check_cache(const ir_operands *args, int i, const char *what, const geometry *g)
{
    ir_type cache;
    bool by_position = ir_operand_given(args, POSITIONS);
    BS_TRY(ir_operand_need(args, i, what, by_position ? 2 : 3, &cache));
    BS_TRY(ir_operand_need_same(args, i, X));
    bool fits = ir_dim_is(cache.dim[cache.rank - 1], g->rotated / 2) &&
                (by_position || (ir_dim_equal(cache.dim[0], g->batch) && ir_dim_equal(cache.dim[1], g->rows)));
    if (fits) return MDOT_OK;
    char text[IR_SHAPE_TEXT_BYTES];
    return ir_malformed(args, "a %s of shape %s does not match %lld rotated channels", what,
                        ir_shape_text(args, cache.rank, cache.dim, text), (long long)g->rotated);
}

static mdot_status read_geometry(const ir_operands *args, geometry *out)
{
    geometry g = {.heads = ir_dim_number(0)};
    ir_type positions;
    BS_TRY(ir_operand_need(args, X, "input", -1, &g.type));
    BS_TRY(ir_operand_need_floats(args, X, "input"));
    if (g.type.rank != 3 && g.type.rank != 4)
        return ir_malformed(args, "an input of %d dimensions instead of 3 or 4", g.type.rank);
    g.batch = g.type.dim[0];
    g.heads = g.type.dim[1];
    g.rows = g.type.dim[g.type.rank - 2];
    BS_TRY(read_channels(args, &g));
    BS_TRY(check_cache(args, COS, "cosine cache", &g));
    BS_TRY(check_cache(args, SIN, "sine cache", &g));
    if (ir_operand_given(args, POSITIONS)) {
        BS_TRY(ir_operand_need(args, POSITIONS, "position ids", 2, &positions));
        BS_TRY(ir_operand_need_integers(args, POSITIONS, "position ids"));
        if (!ir_dim_equal(positions.dim[0], g.batch) || !ir_dim_equal(positions.dim[1], g.rows))
            return ir_malformed(args, "position ids must have one number for each token");
    }
    *out = g;
    return MDOT_OK;
}

mdot_status ir_result_rotary_embedding(const ir_operands *args, ir_type *out_type)
{
    geometry g;
    mdot_status status = read_geometry(args, &g);
    if (status == MDOT_OK) *out_type = g.type;
    return status;
}

/* Four products and two sums per pair of rotated channels. The caches are computed, so they are not parameters. */
void ir_cost_rotary_embedding(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    geometry g;
    out_cost->parameters = 0;
    if (read_geometry(&args, &g) != MDOT_OK) return;
    double vectors = ir_value_elements(node->inputs[X], length) / (double)g.channels;
    out_cost->flops = vectors * (double)(g.rotated / 2) * 6;
}

/* Rotates one token's head; `x` and `out` are the channels. */
static void rotate(const double *x, const double *cosine, const double *sine, int64_t rotated, bool interleaved,
                   double *out)
{
    int64_t half = rotated / 2;
    for (int64_t k = 0; k < half; k++) {
        int64_t first = interleaved ? 2 * k : k, second = interleaved ? 2 * k + 1 : k + half;
        out[first] = cosine[k] * x[first] - sine[k] * x[second];
        out[second] = sine[k] * x[first] + cosine[k] * x[second];
    }
}

mdot_status ir_eval_rotary_embedding(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                     mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    geometry g;
    BS_TRY(read_geometry(&args, &g));
    const ir_wide *positions = ir_tensor_input(node, input, POSITIONS);
    bool interleaved = ir_node_int(node, "interleaved", 0) != 0;
    int64_t heads = g.heads.offset, rows = g.rows.offset, half = g.rotated / 2;
    for (int64_t offset = 0; offset < input[X]->count; offset += g.channels) {
        int64_t vector = offset / g.channels; /* heads before rows in four dimensions, rows before heads in three */
        int64_t row = g.type.rank == 4 ? vector % rows : vector / heads % rows;
        int64_t token = vector / (heads * rows) * rows + row;
        int64_t entry = positions != NULL ? positions->i[token] : token;
        if (positions != NULL && (entry < 0 || entry >= input[COS]->dims[0] || entry >= input[SIN]->dims[0]))
            return ir_fail(node, err, MDOT_OUT_OF_RANGE, "position %lld is outside of its caches", (long long)entry);
        for (int64_t k = g.rotated; k < g.channels; k++) out[0]->f[offset + k] = input[X]->f[offset + k];
        rotate(input[X]->f + offset, input[COS]->f + entry * half, input[SIN]->f + entry * half, g.rotated, interleaved,
               out[0]->f + offset);
    }
    return MDOT_OK;
}
