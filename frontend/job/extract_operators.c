/* extract_operators.c — converts a typed graph with recognised patterns into an mdot_job.
 *
 * Each node becomes an operator, except nodes without data movement: reshapes, casts between floating types, and folded
 * nodes. Nodes exported separately but run as one operator become one: a matmul or a convolution with the following
 * bias vector, or a convolution with its BatchNormalization. */
#include "frontend/job/stages.h"

#include "frontend/job/job_tables.h"
#include "frontend/job/operator_sequence.h"
#include "frontend/job/parameters.h"
#include "frontend/job/traced_program.h"

#include <string.h>

enum { NONE = -1 };

typedef struct extractor {
    fe_job *job;
    fe_operator *operators;
    int count;
    int *operator_of;                      /* by value id: index of the producing operator, or NONE */
    bool *needs_gradient;                  /* by value id */
    bool *reaches;                         /* by value id (operator_sequence.h) */
    bool *once;                            /* by value id (fe_job.h) */
    const fe_names *noted[FE_NOTED_FLAGS]; /* nodes with notes of the trace */
    /* Arrays for the later steps. */
    int *view_source, *gradient_count;
    bool *counted;                /* by value id */
    mdot_job_operator *described; /* by operator */
    uint32_t *inputs;             /* inputs of all operators, concatenated */
} extractor;

static bool is_free(const ir_node *node)
{
    const fe_row *row = fe_row_of(node);
    if (fe_stops_gradient(node) || fe_is_view(node)) return true;
    if (row->is_free || !row->is_free_between_floats) return row->is_free;
    return ir_dtype_is_float(node->inputs[0]->type.dtype) && ir_dtype_is_float(node->outputs[0]->type.dtype);
}

static bool is_convolution(const ir_node *node) { return fe_row_of(node)->settings == FE_SETTINGS_CONVOLUTION; }

/* The producer of `value`, if it may absorb the node behind as the only reader. NULL: none. */
static fe_operator *absorber_of(const extractor *e, const ir_value *value)
{
    int index = value != NULL && value->constant == NULL ? e->operator_of[value->id] : NONE;
    if (index == NONE || e->operators[index].result != value) return NULL;
    return ir_value_single_user(value) != NULL ? &e->operators[index] : NULL;
}

/* Does a constant have one element per channel and width 1 in all other axes? `axis` counts from the end. */
static bool is_channel_vector(const ir_value *value, int axis, int64_t channels)
{
    if (value->constant == NULL || !ir_dtype_is_float(value->type.dtype)) return false;
    if (channels < 2 || value->constant->count != channels) return false;
    return axis < value->type.rank && ir_dim_is(value->type.dim[value->type.rank - 1 - axis], channels);
}

static void absorb(extractor *e, fe_operator *op, const ir_node *node)
{
    op->result = node->outputs[0];
    e->operator_of[node->outputs[0]->id] = (int)(op - e->operators);
}

/* Add(matmul, vector): the vector becomes the bias. */
static bool absorb_bias(extractor *e, const ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        const ir_value *made = node->inputs[i], *vector = node->inputs[1 - i];
        fe_operator *op = absorber_of(e, made);
        if (op == NULL || op->bias != NULL || op->normalised) continue;
        bool convolution = is_convolution(op->node);
        if (!convolution && fe_matmul_weight(e->job, op->node) == NULL) continue;
        if (ir_node_input(op->node, 2) != NULL) continue;
        int axis = convolution ? made->type.rank - 2 : 0;
        const ir_dim *dim = &made->type.dim[made->type.rank - 1 - axis];
        if (made->type.rank < 2 || !is_channel_vector(vector, axis, dim->offset)) continue;
        if (!ir_type_equal(&node->outputs[0]->type, &made->type)) continue;
        op->bias = vector;
        op->needs_gradient = op->needs_gradient || e->needs_gradient[node->outputs[0]->id];
        absorb(e, op, node);
        return true;
    }
    return false;
}

static bool absorb_normalisation(extractor *e, const ir_node *node)
{
    fe_operator *op = absorber_of(e, node->inputs[0]);
    if (op == NULL || !is_convolution(op->node) || op->normalised) return false;
    op->normalised = true;
    op->norm_frozen = fe_is_parameter_operand(e->job, node, 1) && !fe_is_trained_operand(e->job, node, 1);
    op->needs_gradient = op->needs_gradient || e->needs_gradient[node->outputs[0]->id];
    absorb(e, op, node);
    return true;
}

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

/* Step kinds in the run beginning with `node`. */
static int steps_of_run(const ir_node *node, const ir_value *map)
{
    int steps = 0;
    for (; node != NULL && channel_step(node, map); node = ir_value_single_user(map)) {
        steps |= channel_step(node, map);
        map = node->outputs[0];
    }
    return steps;
}

/* Is the value the result of an earlier step of a run? */
static bool is_inside_run(const ir_value *map)
{
    const ir_node *node = map->def;
    for (int i = 0; node != NULL && i < node->input_count && i < 2; i++)
        if (node->inputs[i] != NULL && channel_step(node, node->inputs[i])) return true;
    return false;
}

/* Some exporters write an inference BatchNormalization as (x - mean) * scale + shift. Exporters for Caffe write it
 * with a further scale and shift behind it. The result is a run of such steps behind a convolution or a
 * normalisation. The run must contain both additions and multiplications, because a bias alone or a scale alone is
 * not a normalisation. For example, LayerScale behind a normalisation is a Mul with its own parameters. */
static bool absorb_channel_step(extractor *e, const ir_node *node)
{
    for (int i = 0; i < node->input_count && i < 2; i++) {
        const ir_value *map = node->inputs[i];
        fe_operator *op = absorber_of(e, map);
        if (op == NULL || !channel_step(node, map)) continue;
        bool normalised = op->normalised || fe_row_of(op->node)->gradient == FE_GRADIENT_BATCH_NORM;
        if (!normalised && !is_convolution(op->node)) continue;
        bool continues = normalised && is_inside_run(map);
        if (!continues && steps_of_run(node, map) != (SHIFTS | SCALES)) continue;
        op->normalised = op->normalised || !normalised;
        absorb(e, op, node);
        return true;
    }
    return false;
}

static bool needs_gradient_of(const extractor *e, const ir_value *value)
{
    return value != NULL && value->constant == NULL && e->needs_gradient[value->id];
}

static bool has_trained_parameter(const fe_job *job, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (fe_is_trained_operand(job, node, i)) return true;
    return false;
}

/* Does the node read data that needs a gradient? Values computed from parameters alone are no data, except for an
 * operator that computes another one. */
static bool reads_trained_value(const extractor *e, const ir_node *node)
{
    const ir_value *result = fe_first_output(node);
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (needs_gradient_of(e, value) && (!e->once[value->id] || (result != NULL && e->once[result->id])))
            return true;
    }
    return false;
}

static bool reads_trained_work(const extractor *e, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (needs_gradient_of(e, node->inputs[i])) return true;
    return false;
}

static void propagate_gradient(extractor *e, const ir_node *node, bool needed)
{
    for (int i = 0; i < node->output_count; i++) {
        const ir_value *value = node->outputs[i];
        if (value != NULL) e->needs_gradient[value->id] = needed && ir_dtype_is_float(value->type.dtype);
    }
}

/* By value id: the value behind a view, or the value itself. */
static void find_view_sources(const extractor *e)
{
    int *view_source = e->view_source;
    const ir_graph *graph = e->job->graph;
    for (int i = 0; i < graph->value_count; i++) view_source[i] = i;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (!is_free(node) || node->input_count == 0 || !needs_gradient_of(e, node->inputs[0])) continue;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL) view_source[node->outputs[i]->id] = view_source[node->inputs[0]->id];
    }
}

/* An operator sends one gradient to each operand. A view's gradients count for the value behind it. */
static void count_gradients(const extractor *e)
{
    int value_count = e->job->graph->value_count, *count = e->gradient_count;
    find_view_sources(e);
    for (int i = 0; i < e->count; i++) {
        const ir_node *node = e->operators[i].node;
        if (!fe_has_gradient(node)) continue;
        for (int k = 0; k < node->input_count; k++)
            if (needs_gradient_of(e, node->inputs[k]) && !ir_node_reads_before(node, k))
                count[e->view_source[node->inputs[k]->id]]++;
    }
    for (int i = 0; i < value_count; i++) count[i] = count[e->view_source[i]];
    e->job->gradient_count = count;
}

static void start_operator(extractor *e, const ir_node *node)
{
    fe_operator *op = &e->operators[e->count];
    *op = (fe_operator){.node = node};
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL) e->operator_of[node->outputs[i]->id] = e->count;
    op->result = fe_first_output(node);
    e->count++;
}

static void visit_node(extractor *e, const ir_node *node)
{
    bool receives = fe_receives_gradient(node, e->reaches) && !fe_stops_gradient(node);
    bool reads = receives && reads_trained_value(e, node);
    bool starts = ir_node_int(node, FE_STARTS_GRADIENT, 0) != 0;
    bool needed = receives && (reads || starts || reads_trained_work(e, node) || has_trained_parameter(e->job, node));
    propagate_gradient(e, node, needed);
    if (is_free(node)) {
        const ir_value *source = node->input_count > 0 ? node->inputs[0] : NULL;
        int index = source != NULL && source->constant == NULL ? e->operator_of[source->id] : NONE;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL) e->operator_of[node->outputs[i]->id] = index;
        return;
    }
    if (absorb_channel_step(e, node)) return;
    if (node->op == &ir_ops[IR_OP_Add] && absorb_bias(e, node)) return;
    if (fe_row_of(node)->gradient == FE_GRADIENT_BATCH_NORM && absorb_normalisation(e, node)) return;
    start_operator(e, node);
    e->operators[e->count - 1].needs_gradient = needed;
    e->operators[e->count - 1].needs_data_gradient = reads;
}

/* The operators that `op` reads, in ascending order and without duplicates. */
static size_t list_inputs(const extractor *e, const fe_operator *op, uint32_t *out)
{
    size_t count = 0;
    for (int i = 0; i < op->node->input_count; i++) {
        const ir_value *value = op->node->inputs[i];
        int producer = value != NULL && value->constant == NULL ? e->operator_of[value->id] : NONE;
        if (producer == NONE) continue;
        size_t index = count;
        while (index > 0 && out[index - 1] > (uint32_t)producer) index--;
        if (index > 0 && out[index - 1] == (uint32_t)producer) continue;
        memmove(out + index + 1, out + index, (count - index) * sizeof *out);
        out[index] = (uint32_t)producer;
        count++;
    }
    return count;
}

/* A shared parameter is counted at the first operator. */
static void count_parameters(const fe_job *job, const fe_operator *op, bool *counted, mdot_job_operator *out)
{
    const ir_node *node = op->node;
    if (op->bias != NULL) fe_count_parameter(job, op->bias, counted, &out->parameters, &out->frozen_parameters);
    for (int i = 0; i < node->input_count; i++)
        if (fe_is_parameter_operand(job, node, i))
            fe_count_parameter(job, node->inputs[i], counted, &out->parameters, &out->frozen_parameters);
    if (!op->normalised) return;
    double channels = op->result->type.rank > 1 ? (double)op->result->type.dim[1].offset : 0;
    *(op->norm_frozen ? &out->frozen_parameters : &out->parameters) += 2 * channels; /* scale and shift */
}

/* The node's scope is the module that ran it; a parameter's name is the owning module. */
static bool is_recomputed(const fe_job *job, const fe_operator *op)
{
    return fe_is_recomputed(job->graph, fe_operator_scope(job, op)) ||
           fe_is_recomputed(job->graph, fe_operator_parameter_module(job, op));
}

/* The operator gets no gradient, although an operator that it reads has one. */
static uint32_t stop_flag(const extractor *e, const uint32_t *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (e->operators[inputs[i]].needs_gradient) return MDOT_OPERATOR_STOPS_GRADIENT;
    return 0;
}

/* An operator that is known by its bytes alone. */
static void count_unpriced(fe_job *job, const mdot_job_operator *op)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
        job->check.unpriced_bytes +=
            (double)job->batch * (sample->bytes_read + sample->bytes_written) + step->bytes_read + step->bytes_written;
    }
    job->check.unpriced_operators++;
}

static void describe_operator(const extractor *e, int index, mdot_job_operator *out, uint32_t *inputs)
{
    const fe_job *job = e->job;
    const fe_operator *op = &e->operators[index];
    const fe_row *row = fe_type_row(job, op->node);
    bool needs_module = job->options->keep_names != 0 || job->options->freezing != NULL;
    out->struct_size = sizeof *out;
    out->known = row->type != IR_OP_Opaque;
    out->type = out->known ? ir_ops[row->type].name : op->node->op_type;
    out->traits = row->traits;
    out->inputs = inputs;
    out->input_count = list_inputs(e, op, inputs);
    count_parameters(job, op, e->counted, out);
    out->module = needs_module ? fe_operator_module(job, op) : NULL;
    fe_operator_settings(job, op, out->setting);
    fe_operator_costs(job, op, out, e->job->check.job_flops);
    if (!out->known && ir_node_attr(op->node, FE_FLOPS) == NULL) count_unpriced(e->job, out);
    out->flags |= (is_recomputed(job, op) ? MDOT_OPERATOR_RECOMPUTED : 0) | fe_noted_flags(e->noted, op->node);
    if (fe_is_kept(e->noted, op->node)) out->flags &= ~(uint32_t)MDOT_OPERATOR_RECOMPUTED;
    if (!op->needs_gradient && out->input_count > 0) out->flags |= stop_flag(e, inputs, out->input_count);
}

/* Freezes parameters by the names of modules, then drops the names unless the caller keeps them. */
static mdot_status freeze_parameters(const fe_job *job, mdot_error *reason)
{
    const mdot_job_options *options = job->options;
    if (options->freezing == NULL) return MDOT_OK;
    mdot_status status = mdot_operators_freeze(options->freezing, job->operators, job->operator_count, reason);
    for (size_t i = 0; i < job->operator_count && options->keep_names == 0; i++) job->operators[i].module = NULL;
    return status;
}

static void describe_operators(const extractor *e)
{
    fe_job *job = e->job;
    uint32_t *inputs = e->inputs;
    for (int i = 0; i < e->count; i++) {
        describe_operator(e, i, &e->described[i], inputs);
        inputs += e->described[i].input_count;
    }
    fe_job_find_layers(job, e->operators, e->described, e->count);
    job->operators = e->described;
    job->operator_count = (size_t)e->count;
}

void fe_job_finish(fe_job *job)
{
    if (fe_is_compiled(job->graph)) job->notes |= MDOT_JOB_COMPILED;
    const mdot_job_description description = {.struct_size = sizeof description,
                                              .operators = job->operators,
                                              .operator_count = job->operator_count,
                                              .batch = job->batch,
                                              .has_optimizer = job->has_optimizer,
                                              .optimizer = job->optimizer,
                                              .notes = job->notes};
    mdot_error reason;
    job->status = freeze_parameters(job, &reason);
    if (job->status == MDOT_OK) {
        job->status = mdot_job_create(&description, &job->result, &reason);
        /* The dimensions in the file exceed every limit. */
        if (job->status == MDOT_INVALID_ARGUMENT) job->status = MDOT_MALFORMED;
    }
    if (job->status != MDOT_OK)
        mdot_fail(job->err, job->status, "%s: %s", job->graph->name, reason.message);
    else
        fe_job_add_program(job);
}

static extractor make_extractor(fe_job *job)
{
    const ir_graph *graph = job->graph;
    ir_arena *arena = graph->arena;
    size_t node_count = 0, input_count = 0, value_count = (size_t)graph->value_count;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        node_count++;
        input_count += (size_t)node->input_count;
    }
    return (extractor){.job = job,
                       .operators = IR_NEW_ARRAY(arena, fe_operator, node_count),
                       .operator_of = IR_NEW_ARRAY(arena, int, value_count),
                       .needs_gradient = IR_NEW_ARRAY(arena, bool, value_count),
                       .reaches = IR_NEW_ARRAY(arena, bool, value_count),
                       .once = IR_NEW_ARRAY(arena, bool, value_count),
                       .view_source = IR_NEW_ARRAY(arena, int, value_count),
                       .gradient_count = IR_NEW_ARRAY(arena, int, value_count),
                       .counted = IR_NEW_ARRAY(arena, bool, value_count),
                       .described = IR_NEW_ARRAY(arena, mdot_job_operator, node_count),
                       .inputs = IR_NEW_ARRAY(arena, uint32_t, input_count)};
}

void fe_job_extract_operators(fe_job *job)
{
    ir_graph *graph = job->graph;
    extractor e = make_extractor(job);
    if (ir_arena_failed(graph->arena)) return;
    for (int i = 0; i < graph->value_count; i++) e.operator_of[i] = NONE;
    fe_find_gradient_flow(job, e.reaches);
    fe_find_parameter_work(job, e.once);
    fe_read_noted_nodes(graph, e.noted);
    job->once = e.once;
    job->needs_gradient = e.needs_gradient;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) visit_node(&e, node);
    if (e.count == 0) {
        job->status = mdot_fail(job->err, MDOT_MALFORMED,
                                "%s: the graph contains only operators that are free, such as Identity and Constant",
                                graph->name);
        return;
    }
    fe_job_warn_folded_norms(job, e.operators, e.count);
    count_gradients(&e);
    describe_operators(&e);
}
