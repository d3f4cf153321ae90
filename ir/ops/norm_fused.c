/* norm_fused.c — layer normalisations fused with the operators before them by ONNX Runtime's optimiser:
 * SkipLayerNormalization and EmbedLayerNormalization (com.microsoft; docs/ContribOperators.md of onnxruntime). */
#include "ir/ops/operands.h"

/* Normalises the rows of `sum` into `out`, scales by gamma and shifts by beta (NULL: skipped). The statistics, one
 * number per row, are stored if their outputs are present. */
static void normalize_rows(const ir_wide *sum, double epsilon, const ir_wide *gamma, const ir_wide *beta, ir_wide *out,
                           ir_wide *means, ir_wide *inverses)
{
    int64_t columns = sum->dims[sum->rank - 1];
    for (int64_t r = 0; columns && r < sum->count / columns; r++) {
        double mean, inverse;
        ir_norm_row(sum->f + r * columns, columns, epsilon, out->f + r * columns, &mean, &inverse);
        if (means != NULL) means->f[r] = mean;
        if (inverses != NULL) inverses->f[r] = inverse;
    }
    ir_norm_multiply(out, gamma);
    if (beta != NULL) ir_norm_add(out, beta);
}

static double read_epsilon(const ir_node *node)
{
    return ir_node_float(node, "epsilon", 1e-12); /* ONNX Runtime's default for the fused forms */
}

enum { SKIP_MEAN = 1, SKIP_INVERSE = 2, SKIP_SUM = 3 };

mdot_status ir_outputs_skip_layer_normalization(const ir_operands *args, int output, ir_type *out_type)
{
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need_floats(args, 0, "input"));
    if (out_type->rank < 2) return ir_malformed(args, "an input of %d dimensions lacks rows", out_type->rank);
    ir_dim hidden = out_type->dim[out_type->rank - 1];
    BS_TRY(ir_norm_need_parameter(args, 1, "skip", out_type));
    BS_TRY(ir_norm_need_vector(args, 2, "gamma", hidden));
    BS_TRY(ir_norm_need_vector(args, 3, "beta", hidden));
    BS_TRY(ir_norm_need_vector(args, 4, "bias", hidden));
    if (output != SKIP_MEAN && output != SKIP_INVERSE) return MDOT_OK;
    out_type->dtype = MDOT_DTYPE_F32;
    out_type->dim[out_type->rank - 1] = ir_dim_number(1);
    return MDOT_OK;
}

mdot_status ir_eval_skip_layer_normalization(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                             mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_wide *sum;
    BS_TRY(ir_make_output(arena, &args, SKIP_SUM, out, &sum));
    ir_copy_elements(sum, 0, input[0], 0, input[0]->count);
    ir_norm_add(sum, input[1]);
    if (ir_tensor_input(node, input, 4) != NULL) ir_norm_add(sum, input[4]);
    normalize_rows(sum, read_epsilon(node), input[2], ir_tensor_input(node, input, 3), out[0],
                   ir_node_wants(node, SKIP_MEAN) ? out[SKIP_MEAN] : NULL,
                   ir_node_wants(node, SKIP_INVERSE) ? out[SKIP_INVERSE] : NULL);
    return MDOT_OK;
}

enum { /* inputs */
       EMBED_IDS = 0,
       EMBED_SEGMENTS = 1,
       EMBED_WORDS = 2,
       EMBED_POSITIONS = 3,
       EMBED_SEGMENT_TABLE = 4,
       EMBED_GAMMA = 5,
       EMBED_BETA = 6,
       EMBED_MASK = 7,
       EMBED_POSITION_IDS = 8
};
enum { EMBED_MASK_INDEX = 1, EMBED_SUM = 2 }; /* outputs */

/* Checks ids in rows of the batch: of rank 2, or absent. Position ids may repeat over the batch. */
static mdot_status need_ids(const ir_operands *args, int i, const char *what, const ir_type *ids)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type type;
    BS_TRY(ir_operand_need(args, i, what, 2, &type));
    BS_TRY(ir_operand_need_integers(args, i, what));
    bool repeats = i == EMBED_POSITION_IDS && ir_dim_is(type.dim[0], 1);
    if (ir_dim_equal(type.dim[1], ids->dim[1]) && (repeats || ir_dim_equal(type.dim[0], ids->dim[0]))) return MDOT_OK;
    return ir_malformed(args, "the shape of the %s differs from that of the input ids", what);
}

/* Checks a table whose rows are as wide as those of the words. */
static mdot_status need_table(const ir_operands *args, int i, const char *what, ir_type *out_table)
{
    ir_type words;
    mdot_status status = ir_operand_need(args, i, what, 2, out_table);
    if (status == MDOT_OK) status = ir_operand_need_floats(args, i, what);
    if (status == MDOT_OK) status = ir_operand_need(args, EMBED_WORDS, "word embedding", 2, &words);
    if (status != MDOT_OK || ir_dim_equal(out_table->dim[1], words.dim[1])) return status;
    return ir_malformed(args, "the rows of the %s differ in width from the word embedding", what);
}

mdot_status ir_outputs_embed_layer_normalization(const ir_operands *args, int output, ir_type *out_type)
{
    ir_type ids, table, words;
    BS_TRY(ir_operand_need(args, EMBED_IDS, "input ids", 2, &ids));
    BS_TRY(need_ids(args, EMBED_IDS, "input ids", &ids));
    BS_TRY(need_ids(args, EMBED_SEGMENTS, "segment ids", &ids));
    BS_TRY(need_ids(args, EMBED_MASK, "mask", &ids));
    BS_TRY(need_ids(args, EMBED_POSITION_IDS, "position ids", &ids));
    BS_TRY(need_table(args, EMBED_WORDS, "word embedding", &words));
    BS_TRY(need_table(args, EMBED_POSITIONS, "position embedding", &table));
    if (ir_operand_given(args, EMBED_SEGMENTS))
        BS_TRY(need_table(args, EMBED_SEGMENT_TABLE, "segment embedding", &table));
    for (int i = EMBED_GAMMA; i <= EMBED_BETA; i++) {
        const char *what = i == EMBED_GAMMA ? "gamma" : "beta";
        BS_TRY(ir_operand_need(args, i, what, 1, &table));
        BS_TRY(ir_norm_need_vector(args, i, what, words.dim[1]));
    }
    *out_type = (ir_type){words.dtype, 3, {ids.dim[0], ids.dim[1], words.dim[1]}};
    if (output == EMBED_MASK_INDEX) *out_type = (ir_type){MDOT_DTYPE_I32, 1, {ids.dim[0]}};
    return MDOT_OK;
}

/* Adds the rows of `table` at `ids`. If ids is NULL, uses each token's position in its sequence. Ids of a single
 * sequence apply to every sequence. */
static mdot_status add_rows(const ir_node *node, const ir_wide *table, const ir_wide *ids, ir_wide *sum,
                            mdot_error *err)
{
    int64_t length = sum->dims[1], width = sum->dims[2];
    for (int64_t token = 0; token < sum->dims[0] * length; token++) {
        int64_t id = ids != NULL ? ids->i[token % ids->count] : token % length;
        if (id < 0 || id >= table->dims[0])
            return ir_fail(node, err, MDOT_OUT_OF_RANGE, "id %lld is outside of a table of %lld rows", (long long)id,
                           (long long)table->dims[0]);
        for (int64_t c = 0; c < width; c++) sum->f[token * width + c] += table->f[id * width + c];
    }
    return MDOT_OK;
}

mdot_status ir_eval_embed_layer_normalization(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                              mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_wide *sum;
    const ir_wide *segments = ir_tensor_input(node, input, EMBED_SEGMENTS);
    const ir_wide *mask = ir_node_wants(node, EMBED_MASK_INDEX) ? ir_tensor_input(node, input, EMBED_MASK) : NULL;
    BS_TRY(ir_make_output(arena, &args, EMBED_SUM, out, &sum));
    BS_TRY(add_rows(node, input[EMBED_WORDS], input[EMBED_IDS], sum, err));
    BS_TRY(add_rows(node, input[EMBED_POSITIONS], ir_tensor_input(node, input, EMBED_POSITION_IDS), sum, err));
    if (segments != NULL) BS_TRY(add_rows(node, input[EMBED_SEGMENT_TABLE], segments, sum, err));
    for (int64_t k = 0; mask != NULL && k < mask->count; k++) /* tokens per sequence that the mask keeps */
        out[EMBED_MASK_INDEX]->i[k / mask->dims[1]] += mask->i[k] != 0;
    normalize_rows(sum, read_epsilon(node), input[EMBED_GAMMA], input[EMBED_BETA], out[0], NULL, NULL);
    return MDOT_OK;
}

/* Per element: two or three rows summed, and a layer norm. Only the gathered rows of the tables are read. */
void ir_cost_embed_layer_normalization(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    double elements = ir_value_elements(node->outputs[0], length), bytes = ir_value_bytes(node->outputs[0], length);
    int tables[3] = {EMBED_WORDS, EMBED_POSITIONS, EMBED_SEGMENT_TABLE}, count = 0;
    for (int i = 0; i < 3; i++) {
        double table = ir_value_bytes(ir_node_input(node, tables[i]), length);
        if (table > bytes) out_cost->bytes_read -= table - bytes;
        count += ir_node_input(node, tables[i]) != NULL;
    }
    out_cost->flops = elements * (count - 1 + 8);
}
