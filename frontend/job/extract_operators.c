/* extract_operators.c — converts a typed graph with recognised patterns into an mdot_job.
 *
 * Each node becomes a token, except nodes that move no data: changes of shape, casts between floating types, and
 * folded nodes. Nodes that exporters write separately but frameworks run as one operator become one token: a matmul
 * or a convolution with the bias vector behind it, or a convolution with its BatchNormalization.
 */
#include "frontend/job/job_reader.h"

#include <string.h>

enum { NONE = -1 };

typedef struct tokeniser {
    fe_job *job;
    fe_operator *tokens;
    int count;
    int *token_of;        /* by value id: the token that produces it, or NONE */
    bool *needs_gradient; /* by value id */
} tokeniser;

/* ---- Selection of nodes
 * --------------------------------------------------------------------------------------------- */

static bool is_free(const ir_node *node)
{
    const fe_row *row = fe_row_of(node);
    if (row->is_free || !row->is_free_between_floats) return row->is_free;
    return ir_dtype_is_float(node->inputs[0]->type.dtype) && ir_dtype_is_float(node->outputs[0]->type.dtype);
}

static bool is_convolution(const ir_node *node)
{
    return fe_row_of(node)->settings == FE_SETTINGS_CONVOLUTION;
}

/* The token that produces `value` and may absorb the node behind it, because that node is the only reader. NULL:
 * none. */
static fe_operator *absorbing(const tokeniser *t, const ir_value *value)
{
    int token = value != NULL && value->constant == NULL ? t->token_of[value->id] : NONE;
    if (token == NONE || t->tokens[token].result != value) return NULL;
    return ir_value_single_user(value) != NULL ? &t->tokens[token] : NULL;
}

/* Does a constant have one element per channel and width 1 in all other axes? `axis` counts from the end. */
static bool is_channel_vector(const ir_value *value, int axis, int64_t channels)
{
    if (value->constant == NULL || !ir_dtype_is_float(value->type.dtype)) return false;
    if (channels < 2 || value->constant->count != channels) return false;
    return axis < value->type.rank && ir_dim_is(value->type.dim[value->type.rank - 1 - axis], channels);
}

static void absorb(tokeniser *t, fe_operator *token, const ir_node *node)
{
    token->result = node->outputs[0];
    t->token_of[node->outputs[0]->id] = (int)(token - t->tokens);
}

/* Add(matmul, vector): the vector becomes the bias. */
static bool absorb_bias(tokeniser *t, const ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        const ir_value *made = node->inputs[i], *vector = node->inputs[1 - i];
        fe_operator *token = absorbing(t, made);
        if (token == NULL || token->bias != NULL || token->normalised) continue;
        bool convolution = is_convolution(token->node);
        if (!convolution && fe_matmul_weight(t->job, token->node) == NULL) continue;
        if (ir_node_input(token->node, 2) != NULL) continue;
        int axis = convolution ? made->type.rank - 2 : 0;
        const ir_dim *dim = &made->type.dim[made->type.rank - 1 - axis];
        if (made->type.rank < 2 || !is_channel_vector(vector, axis, dim->offset)) continue;
        if (!ir_type_equal(&node->outputs[0]->type, &made->type)) continue;
        token->bias = vector;
        absorb(t, token, node);
        return true;
    }
    return false;
}

static bool absorb_normalisation(tokeniser *t, const ir_node *node)
{
    fe_operator *token = absorbing(t, node->inputs[0]);
    if (token == NULL || !is_convolution(token->node) || token->normalised) return false;
    token->normalised = true;
    absorb(t, token, node);
    return true;
}

/* ---- A normalisation written as pointwise operators
 * ----------------------------------------------------------------- */

enum { SHIFTS = 1, SCALES = 2 };

/* Does `node` add a constant per channel to `map` or multiply `map` by one? 0: neither. */
static int channel_step(const ir_node *node, const ir_value *map)
{
    static const unsigned char step_of[IR_OP_COUNT] = {
        [IR_OP_Add] = SHIFTS, [IR_OP_Sub] = SHIFTS, [IR_OP_Mul] = SCALES, [IR_OP_Div] = SCALES};
    int step = step_of[ir_node_opcode(node)];
    if (!step || map->type.rank < 3 || !ir_type_equal(&node->outputs[0]->type, &map->type)) return 0;
    const ir_value *vector = node->inputs[0] == map ? node->inputs[1] : node->inputs[0];
    return is_channel_vector(vector, map->type.rank - 2, map->type.dim[1].offset) ? step : 0;
}

/* Some exporters write an inference BatchNormalization as (x - mean) * scale + shift. Exporters for Caffe write it
 * with a further scale and shift behind it. The result is a run of such steps behind a convolution or a
 * normalisation. The run must contain both additions and multiplications, because a bias alone or a scale alone is
 * not a normalisation. */
static bool absorb_channel_step(tokeniser *t, const ir_node *node)
{
    for (int i = 0; i < node->input_count && i < 2; i++) {
        const ir_value *map = node->inputs[i];
        fe_operator *token = absorbing(t, map);
        if (token == NULL || !channel_step(node, map)) continue;
        if (token->normalised || fe_row_of(token->node)->gradient == FE_GRADIENT_BATCH_NORM) {
            absorb(t, token, node);
            return true;
        }
        if (!is_convolution(token->node)) continue;
        int steps = 0;
        const ir_node *next = node;
        for (; next != NULL && channel_step(next, map); next = ir_value_single_user(map)) {
            steps |= channel_step(next, map);
            map = next->outputs[0];
        }
        if (steps != (SHIFTS | SCALES)) continue;
        token->normalised = true;
        absorb(t, token, node);
        return true;
    }
    return false;
}

/* ---- Gradients -------------------------------------------------------------------------------------------------- */

static bool wants_gradient(const tokeniser *t, const ir_value *value)
{
    return value != NULL && value->constant == NULL && t->needs_gradient[value->id];
}

static bool has_parameter(const fe_job *job, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (fe_learns(job, node, i)) return true;
    }
    return false;
}

static bool reads_gradient(const tokeniser *t, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (wants_gradient(t, node->inputs[i])) return true;
    }
    return false;
}

static void spread_gradient(tokeniser *t, const ir_node *node, bool needed)
{
    for (int i = 0; i < node->output_count; i++) {
        const ir_value *value = node->outputs[i];
        if (value != NULL) t->needs_gradient[value->id] = needed && ir_dtype_is_float(value->type.dtype);
    }
}

/* By value id: the value behind a view, or the value itself. */
static void find_shown(const tokeniser *t, int *shown)
{
    const ir_graph *graph = t->job->graph;
    for (int i = 0; i < graph->value_count; i++) shown[i] = i;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (!is_free(node) || node->input_count == 0 || !wants_gradient(t, node->inputs[0])) continue;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != NULL) shown[node->outputs[i]->id] = shown[node->inputs[0]->id];
        }
    }
}

/* An operator sends one gradient to each value that it reads. Gradients of a view count for the value behind it. */
static mdot_status count_gradients(const tokeniser *t)
{
    fe_job *job = t->job;
    int value_count = job->graph->value_count;
    int *shown = IR_NEW_ARRAY(job->graph->arena, int, value_count + 1);
    int *count = IR_NEW_ARRAY(job->graph->arena, int, value_count + 1);
    if (shown == NULL || count == NULL) return fe_job_out_of_memory(job);
    find_shown(t, shown);
    for (int i = 0; i < t->count; i++) {
        const ir_node *node = t->tokens[i].node;
        if (!fe_has_gradient(node)) continue;
        for (int k = 0; k < node->input_count; k++) {
            if (wants_gradient(t, node->inputs[k]) && !ir_node_reads_before(node, k))
                count[shown[node->inputs[k]->id]]++;
        }
    }
    for (int i = 0; i < value_count; i++) count[i] = count[shown[i]];
    job->gradient_count = count;
    return MDOT_OK;
}

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

static void start_token(tokeniser *t, const ir_node *node)
{
    fe_operator *token = &t->tokens[t->count];
    *token = (fe_operator){.node = node};
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL) t->token_of[node->outputs[i]->id] = t->count;
    }
    token->result = fe_first_output(node);
    t->count++;
}

static void take_node(tokeniser *t, const ir_node *node)
{
    bool reads = reads_gradient(t, node), needed = reads || has_parameter(t->job, node);
    spread_gradient(t, node, needed);
    if (is_free(node)) {
        const ir_value *source = node->input_count > 0 ? node->inputs[0] : NULL;
        int token = source != NULL && source->constant == NULL ? t->token_of[source->id] : NONE;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != NULL) t->token_of[node->outputs[i]->id] = token;
        }
        return;
    }
    if (absorb_channel_step(t, node)) return;
    if (node->op == &ir_ops[IR_OP_Add] && absorb_bias(t, node)) return;
    if (fe_row_of(node)->gradient == FE_GRADIENT_BATCH_NORM && absorb_normalisation(t, node)) return;
    start_token(t, node);
    t->tokens[t->count - 1].needs_gradient = needed;
    t->tokens[t->count - 1].needs_data_gradient = reads;
}

/* ---- Dependencies ----------------------------------------------------------------------------------------------- */

/* The tokens that `token` reads, in ascending order and without duplicates. */
static size_t list_inputs(const tokeniser *t, const fe_operator *token, uint32_t *out)
{
    size_t count = 0;
    for (int i = 0; i < token->node->input_count; i++) {
        const ir_value *value = token->node->inputs[i];
        int producer = value != NULL && value->constant == NULL ? t->token_of[value->id] : NONE;
        if (producer == NONE) continue;
        size_t at = count;
        while (at > 0 && out[at - 1] > (uint32_t)producer) at--;
        if (at > 0 && out[at - 1] == (uint32_t)producer) continue;
        memmove(out + at + 1, out + at, (count - at) * sizeof *out);
        out[at] = (uint32_t)producer;
        count++;
    }
    return count;
}

/* A parameter that several operators share is counted at the first of them. */
static double own_parameters(const fe_job *job, const fe_operator *token, bool *counted)
{
    const ir_node *node = token->node;
    double sum = token->bias != NULL ? fe_parameter_count(job, token->bias, counted) : 0;
    for (int i = 0; i < node->input_count; i++) {
        if (fe_learns(job, node, i)) sum += fe_parameter_count(job, node->inputs[i], counted);
    }
    if (!token->normalised) return sum;
    double channels = token->result->type.rank > 1 ? (double)token->result->type.dim[1].offset : 0;
    return sum + 2 * channels; /* scale and shift */
}

static mdot_status make_job(const tokeniser *t, mdot_job **out_job)
{
    fe_job *job = t->job;
    ir_arena *arena = job->graph->arena;
    mdot_job_operator *operators = IR_NEW_ARRAY(arena, mdot_job_operator, t->count);
    bool *counted = IR_NEW_ARRAY(arena, bool, job->graph->value_count);
    if (operators == NULL || counted == NULL) return fe_job_out_of_memory(job);
    for (int i = 0; i < t->count; i++) {
        const fe_operator *token = &t->tokens[i];
        mdot_job_operator *op = &operators[i];
        uint32_t *inputs = IR_NEW_ARRAY(arena, uint32_t, token->node->input_count + 1);
        if (inputs == NULL) return fe_job_out_of_memory(job);
        op->struct_size = sizeof *op;
        const fe_row *row = fe_type_row(job, token->node);
        op->known = row->type != IR_OP_Opaque;
        op->type = op->known ? ir_ops[row->type].name : token->node->op_type;
        op->traits = row->traits;
        op->inputs = inputs;
        op->input_count = list_inputs(t, token, inputs);
        op->parameters = own_parameters(job, token, counted);
        fe_operator_settings(job, token, op->setting);
        fe_operator_costs(job, token, op);
        mdot_status named = job->options->keep_names != 0 ? fe_operator_module(job, token, &op->module) : MDOT_OK;
        if (named != MDOT_OK) return named;
    }
    mdot_status status = fe_job_find_layers(job, t->tokens, operators, t->count);
    if (status != MDOT_OK) return status;
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operators = operators,
                                              .operator_count = (size_t)t->count,
                                              .batch = job->batch,
                                              .has_optimizer = job->has_optimizer,
                                              .optimizer = job->optimizer,
                                              .notes = job->notes};
    mdot_error reason;
    status = mdot_job_create(&description, out_job, &reason);
    if (status == MDOT_OK) return MDOT_OK;
    if (status == MDOT_INVALID_ARGUMENT) status = MDOT_MALFORMED; /* the dimensions in the file exceed every limit */
    return mdot_fail(job->err, status, "%s: %s", job->graph->name, reason.message);
}

mdot_status fe_job_extract_operators(fe_job *job, mdot_job **out_job)
{
    ir_graph *graph = job->graph;
    int node_count = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) node_count++;
    tokeniser t = {.job = job,
                   .tokens = IR_NEW_ARRAY(graph->arena, fe_operator, node_count + 1),
                   .token_of = IR_NEW_ARRAY(graph->arena, int, graph->value_count + 1),
                   .needs_gradient = IR_NEW_ARRAY(graph->arena, bool, graph->value_count + 1)};
    if (t.tokens == NULL || t.token_of == NULL || t.needs_gradient == NULL) return fe_job_out_of_memory(job);
    for (int i = 0; i < graph->value_count; i++) t.token_of[i] = NONE;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) take_node(&t, node);
    if (t.count == 0) {
        return mdot_fail(job->err, MDOT_MALFORMED, "%s: the graph holds no operator that does any work", graph->name);
    }
    fe_job_warn_folded_norms(job, t.tokens, t.count);
    mdot_status status = count_gradients(&t);
    return status == MDOT_OK ? make_job(&t, out_job) : status;
}
