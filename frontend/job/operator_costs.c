/* operator_costs.c — FLOPs and bytes of a forward operator in each phase of a training step.
 *
 * Values that depend on the inputs scale with the batch and are counted per sample. Constants are counted per step.
 * Gradients are derived from the forward operator, as frameworks compute them, even if the file contains gradient
 * nodes. Therefore equal operators cost the same in every export. If a value has several readers, the sum of their
 * gradients is counted with the operator that produces the value. FLOPs of the forward phase come from the operator
 * table.
 */
#include "frontend/job/operator_sequence.h"

#include "frontend/job/job_tables.h"
#include "frontend/job/parameters.h"
#include "frontend/job/stages.h"
#include "frontend/job/traced_program.h"
#include "ir/ops/families.h"

#include <math.h>

enum { FLOAT_BYTES = 4, INDEX_BYTES = 8 };

bool fe_has_gradient(const ir_node *node)
{
    const ir_value *result = fe_first_output(node);
    return result != NULL && ir_dtype_is_float(result->type.dtype) && fe_row_of(node)->gradient != FE_GRADIENT_NOTHING;
}

typedef struct counter {
    const fe_job *job;
    const ir_node *node;
    mdot_job_operator *op;
    double result; /* elements of the result, per sample */
    bool is_once;  /* works on parameters alone, whatever the batch */
} counter;

/* FLOPs of a matmul or a similar operator, without bias, normalisation and the gates of a recurrence. */
static bool is_product(const ir_node *node)
{
    fe_gradient kind = fe_row_of(node)->gradient;
    bool is_priced = node->op == &ir_ops[IR_OP_Opaque] && ir_node_attr(node, FE_FLOPS) != NULL;
    return kind == FE_GRADIENT_MATMUL || kind == FE_GRADIENT_ATTENTION ||
           (is_priced && fe_row_of(node)->type == IR_OP_Opaque);
}

/* Is the value a constant, or computed from parameters alone? Operators on parameters read the latter like data. */
static bool is_once(const counter *c, const ir_value *value)
{
    return value->constant != NULL || (!c->is_once && c->job->once[value->id]);
}

static bool is_trained(const counter *c, const ir_value *value)
{
    if (value == NULL) return false;
    if (value->constant != NULL) return fe_is_trained(c->job, value);
    return is_once(c, value) && c->job->needs_gradient[value->id];
}

static bool is_trained_operand(const counter *c, int input)
{
    const ir_value *value = c->node->inputs[input];
    if (value == NULL || value->constant != NULL) return fe_is_trained_operand(c->job, c->node, input);
    return input < fe_row_of(c->node)->parameter_operands && is_trained(c, value);
}

static double elements(const ir_value *value) { return ir_value_elements(value, 1); }

/* Size of the whole value, with floating types counted as fp32. */
static double bytes(const ir_value *value)
{
    if (value == NULL) return 0;
    bool floating = ir_dtype_is_float(value->type.dtype);
    return elements(value) * (floating ? FLOAT_BYTES : (double)mdot_dtype_size_bytes(value->type.dtype));
}

static double per_sample(const counter *c, double amount) { return amount / (double)c->job->batch; }

static void read_value(const counter *c, mdot_phase phase, const ir_value *value)
{
    if (value == NULL) return;
    if (is_once(c, value))
        c->op->per_step[phase].bytes_read += bytes(value);
    else
        c->op->per_sample[phase].bytes_read += per_sample(c, bytes(value));
}

static void write_value(const counter *c, mdot_phase phase, const ir_value *value)
{
    if (value == NULL) return;
    if (is_once(c, value))
        c->op->per_step[phase].bytes_written += bytes(value);
    else
        c->op->per_sample[phase].bytes_written += per_sample(c, bytes(value));
}

static bool takes_gradient(const counter *c, const ir_value *value)
{
    return value != NULL && !is_once(c, value) && ir_dtype_is_float(value->type.dtype);
}

static void read_inputs(const counter *c, mdot_phase phase)
{
    for (int i = 0; i < c->node->input_count; i++)
        if (!ir_node_reads_before(c->node, i)) read_value(c, phase, c->node->inputs[i]);
}

static void write_data_gradients(const counter *c)
{
    for (int i = 0; i < c->node->input_count; i++)
        if (takes_gradient(c, c->node->inputs[i]) && !ir_node_reads_before(c->node, i))
            write_value(c, MDOT_PHASE_DATA_GRADIENT, c->node->inputs[i]);
}

static void read_gradient(const counter *c, mdot_phase phase)
{
    c->op->per_sample[phase].bytes_read += FLOAT_BYTES * c->result;
}

/* A move reads as much as it writes, rather than the whole table or tensor from which it selects. */
static void count_forward(const counter *c)
{
    const ir_node *node = c->node;
    mdot_load *forward = &c->op->per_sample[MDOT_PHASE_FORWARD];
    forward->flops += per_sample(c, fe_forward_flops(node));
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && (i == 0 || node->outputs[i]->use_count))
            write_value(c, MDOT_PHASE_FORWARD, node->outputs[i]);
    if (ir_ops[fe_row_of(node)->type].lowering == IR_LOWER_MOVE)
        forward->bytes_read += forward->bytes_written;
    else
        read_inputs(c, MDOT_PHASE_FORWARD);
}

static void count_matmul(const counter *c, const fe_operator *source)
{
    mdot_job_operator *op = c->op;
    double flops = op->per_sample[MDOT_PHASE_FORWARD].flops;
    int activations = 0, weights = 0;
    bool has_trained = false;
    for (int i = 0; i < c->node->input_count; i++) {
        const ir_value *value = c->node->inputs[i];
        bool is_factor = i < 2 && takes_gradient(c, value) && c->job->needs_gradient[value->id];
        activations += is_factor;
        weights += i < 2 && is_trained(c, value);
        has_trained = has_trained || is_trained(c, value);
    }
    bool is_recurrent = fe_row_of(c->node)->settings == FE_SETTINGS_RECURRENT;
    if (is_recurrent) activations = weights = 1; /* the states' gradients always, and the input's with them */
    if (source->needs_data_gradient ||
        (is_recurrent && has_trained)) { /* a data factor's gradient needs the other factor */
        op->per_sample[MDOT_PHASE_DATA_GRADIENT].flops += flops * activations;
        read_gradient(c, MDOT_PHASE_DATA_GRADIENT);
        for (int i = 0; i < c->node->input_count; i++) {
            const ir_value *value = c->node->inputs[i];
            bool factor = value != NULL && (is_once(c, value) ? value->type.rank > 1 : activations > 1);
            if (factor && !ir_node_reads_before(c->node, i)) read_value(c, MDOT_PHASE_DATA_GRADIENT, value);
        }
        write_data_gradients(c);
    }
    if (!has_trained) return;
    op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = weights > 0 ? weights * flops : c->result;
    read_gradient(c, MDOT_PHASE_WEIGHT_GRADIENT);
    for (int i = 0; i < c->node->input_count; i++) {
        const ir_value *value = c->node->inputs[i];
        if (takes_gradient(c, value)) read_value(c, MDOT_PHASE_WEIGHT_GRADIENT, value);
        if (is_trained(c, value)) write_value(c, MDOT_PHASE_WEIGHT_GRADIENT, value);
    }
}

/* Does the gradient of a table consist of the rows that were picked? The Python package writes this attribute for
 * torch.nn.Embedding and EmbeddingBag with sparse=True. */
static bool has_sparse_gradient(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Gather] && ir_node_int(node, "sparse_gradient", 0) != 0;
}

/* Parameters of other operators: one multiply-add per result element, besides reading the data gradient. */
static void count_parameters(const counter *c)
{
    bool has_trained = false;
    for (int i = 0; i < c->node->input_count; i++) {
        if (!is_trained_operand(c, i)) continue;
        if (has_sparse_gradient(c->node))
            c->op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written += FLOAT_BYTES * c->result;
        else
            write_value(c, MDOT_PHASE_WEIGHT_GRADIENT, c->node->inputs[i]);
        has_trained = true;
    }
    if (!has_trained) return;
    c->op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = 2 * c->result;
    read_gradient(c, MDOT_PHASE_WEIGHT_GRADIENT);
}

static void count_sum(const counter *c)
{
    for (int i = 0; i < c->node->input_count; i++) {
        const ir_value *value = c->node->inputs[i];
        if (!takes_gradient(c, value) || per_sample(c, elements(value)) >= c->result) continue;
        c->op->per_sample[MDOT_PHASE_DATA_GRADIENT].flops += c->result;
        read_gradient(c, MDOT_PHASE_DATA_GRADIENT);
        write_value(c, MDOT_PHASE_DATA_GRADIENT, value);
    }
}

static void count_concat(const counter *c)
{
    for (int i = 0; i < c->node->input_count; i++) {
        const ir_value *value = c->node->inputs[i];
        if (!takes_gradient(c, value) || c->job->gradient_count[value->id] != 1) continue;
        read_value(c, MDOT_PHASE_DATA_GRADIENT, value);
        write_value(c, MDOT_PHASE_DATA_GRADIENT, value);
    }
}

static void count_data_gradient(const counter *c, fe_gradient kind)
{
    mdot_load *cost = &c->op->per_sample[MDOT_PHASE_DATA_GRADIENT];
    double forward = c->op->per_sample[MDOT_PHASE_FORWARD].flops;
    if (kind == FE_GRADIENT_SUM) {
        count_sum(c);
        return;
    }
    if (kind == FE_GRADIENT_CONCAT) {
        count_concat(c);
        return;
    }
    read_gradient(c, MDOT_PHASE_DATA_GRADIENT);
    write_data_gradients(c);
    if (kind == FE_GRADIENT_SELECTION) cost->bytes_read += INDEX_BYTES * c->result;
    if (kind == FE_GRADIENT_POINTWISE || kind == FE_GRADIENT_NORM || kind == FE_GRADIENT_ATTENTION)
        read_inputs(c, MDOT_PHASE_DATA_GRADIENT);
    double flops = kind == FE_GRADIENT_MOVE        ? 0
                   : kind == FE_GRADIENT_SELECTION ? c->result
                   : kind == FE_GRADIENT_POINTWISE ? forward
                                                   : 2 * forward;
    cost->flops += flops;
}

/* Gradients of several readers are added one after another to a running sum. */
static void count_additions(const counter *c, const ir_value *result)
{
    if (!takes_gradient(c, result)) return;
    double additions = c->job->gradient_count[result->id] - 1;
    if (additions <= 0) return;
    mdot_load *cost = &c->op->per_sample[MDOT_PHASE_DATA_GRADIENT];
    cost->flops += additions * per_sample(c, elements(result));
    cost->bytes_read += 2 * additions * per_sample(c, bytes(result));
    cost->bytes_written += additions * per_sample(c, bytes(result));
}

static void count_fan_out(const counter *c, const fe_operator *source)
{
    if (source->result != fe_first_output(c->node)) {
        count_additions(c, source->result);
        return;
    }
    for (int i = 0; i < c->node->output_count; i++) count_additions(c, c->node->outputs[i]);
}

/* A parameter vector added to the result. In the forward phase only the vector itself adds traffic. */
static void count_bias(const counter *c, const fe_operator *source)
{
    const ir_value *bias = source->bias;
    c->op->per_sample[MDOT_PHASE_FORWARD].flops += c->result;
    read_value(c, MDOT_PHASE_FORWARD, bias);
    if (!source->needs_gradient || (fe_is_parameter(c->job, bias) && !fe_is_trained(c->job, bias))) return;
    c->op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops += c->result;
    write_value(c, MDOT_PHASE_WEIGHT_GRADIENT, bias);
}

/* BatchNormalization in training, on n elements of c channels. Forward: statistics in one pass (three FLOPs per
 * element), then the result in another (two FLOPs: scale and shift). Backward: the sums over the gradient and over
 * its product with the data, then the data gradient. */
enum { BATCH_NORM_FLOPS = 5, BATCH_NORM_DATA_FLOPS = 5, BATCH_NORM_WEIGHT_FLOPS = 3 };

static void count_batch_norm(const counter *c, double channels, bool weight_gradient, bool data_gradient)
{
    mdot_load *forward = &c->op->per_sample[MDOT_PHASE_FORWARD];
    mdot_load *data = &c->op->per_sample[MDOT_PHASE_DATA_GRADIENT];
    mdot_load *weight = &c->op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT];
    double map = FLOAT_BYTES * c->result, vector = FLOAT_BYTES * channels;
    forward->flops += BATCH_NORM_FLOPS * c->result;
    forward->bytes_read += 2 * map;
    forward->bytes_written += map;
    c->op->per_step[MDOT_PHASE_FORWARD].bytes_read += 4 * vector; /* scale, shift, running mean and variance */
    c->op->per_step[MDOT_PHASE_FORWARD].bytes_written += 2 * vector;
    if (weight_gradient) {
        weight->flops += BATCH_NORM_WEIGHT_FLOPS * c->result;
        weight->bytes_read += 2 * map;
        c->op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written += 2 * vector;
    }
    if (!data_gradient) return;
    data->flops += BATCH_NORM_DATA_FLOPS * c->result;
    data->bytes_read += 2 * map;
    data->bytes_written += map;
}

/* A bias before a BatchNormalization has no effect, because the mean is subtracted. It counts only as a parameter. */
static void drop_bias(const counter *c, const ir_node *node)
{
    const ir_value *bias = ir_node_input(node, 2);
    if (bias == NULL) return;
    c->op->per_sample[MDOT_PHASE_FORWARD].flops -= c->result;
    c->op->per_step[MDOT_PHASE_FORWARD].bytes_read -= bytes(bias);
}

static void count_convolution_norm(const counter *c, const fe_operator *source)
{
    double channels = source->result->type.rank > 1 ? (double)source->result->type.dim[1].offset : 0;
    count_batch_norm(c, channels, source->needs_gradient && !source->norm_frozen, source->needs_gradient);
}

/* The part of an operator's FLOPs that are products: without the bias, 10 FLOPs per gate and 5 per score. */
static double product_share(const ir_node *node, const int64_t *setting)
{
    if (fe_row_of(node)->settings == FE_SETTINGS_RECURRENT && node->op != &ir_ops[IR_OP_Opaque]) {
        double sides = 2 * (double)(node->inputs[1]->type.dim[2].offset + node->inputs[2]->type.dim[2].offset);
        return sides / (sides + 10);
    }
    double head_size = (double)setting[MDOT_SETTING_HEAD_SIZE], flops = fe_forward_flops(node);
    const ir_type *value = head_size > 0 && node->input_count > 2 ? &node->inputs[2]->type : NULL;
    if (value != NULL && value->rank == 4) head_size = (head_size + (double)value->dim[3].offset) / 2;
    if (head_size > 0) return 4 * head_size / (4 * head_size + 5);
    bool has_bias = (node->op == &ir_ops[IR_OP_Gemm] || fe_row_of(node)->settings == FE_SETTINGS_CONVOLUTION) &&
                    ir_node_input(node, 2) != NULL;
    return has_bias && flops > 0 ? 1 - elements(fe_first_output(node)) / flops : 1;
}

void fe_job_count_products(fe_job *job)
{
    if (fe_is_traced(job->graph)) return; /* the trace counts the program's calls */
    for (const ir_node *node = job->graph->first; node != NULL; node = node->next) {
        const fe_operator op = {.node = node, .result = fe_first_output(node)};
        int64_t setting[MDOT_SETTING_CAPACITY] = {0};
        if (!is_product(node) || op.result == NULL) continue;
        if (fe_row_of(node)->settings == FE_SETTINGS_ATTENTION) fe_operator_settings(job, &op, setting);
        job->check.dispatched_flops[0] += product_share(node, setting) * fe_forward_flops(node);
    }
}

static void scale_load(mdot_load *load, double factor)
{
    load->flops *= factor;
    load->bytes_read *= factor;
    load->bytes_written *= factor;
}

/* Work on parameters alone is independent of the batch. The trace's rounding of extents is taken back. */
static void scale_operator(const counter *c)
{
    double share = ir_node_float(c->node, FE_SHARE, 1);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        scale_load(&c->op->per_sample[phase], share);
        if (!c->is_once) continue;
        mdot_load *sample = &c->op->per_sample[phase], *step = &c->op->per_step[phase];
        scale_load(sample, (double)c->job->batch);
        step->flops += sample->flops;
        step->bytes_read += sample->bytes_read;
        step->bytes_written += sample->bytes_written;
        *sample = (mdot_load){0};
    }
}

static double gradient_flops(const mdot_job_operator *op)
{
    return op->per_sample[MDOT_PHASE_DATA_GRADIENT].flops + op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops;
}

static void count_gradients(const counter *c, const fe_operator *source)
{
    fe_gradient kind = fe_row_of(c->node)->gradient;
    if (kind == FE_GRADIENT_MATMUL) {
        count_matmul(c, source);
    } else {
        if (source->needs_data_gradient) count_data_gradient(c, kind);
        count_parameters(c);
    }
}

/* Autograd dispatched these FLOPs; a weight gradient takes as many as it needs. */
static void set_backward_flops(const counter *c, double flops)
{
    double *weight = &c->op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops;
    *weight = fmin(*weight, per_sample(c, flops));
    c->op->per_sample[MDOT_PHASE_DATA_GRADIENT].flops = per_sample(c, flops) - *weight;
}

static void count_operator(const counter *c, const fe_operator *source, double *products);

void fe_operator_costs(const fe_job *job, const fe_operator *source, mdot_job_operator *op, double *products)
{
    const ir_value *result = fe_first_output(source->node);
    counter c = {.job = job, .node = source->node, .op = op};
    c.result = per_sample(&c, elements(result));
    c.is_once = result != NULL && job->once[result->id];
    if (source->needs_gradient) count_fan_out(&c, source);
    count_operator(&c, source, products);
    scale_operator(&c);
}

static void count_operator(const counter *c, const fe_operator *source, double *products)
{
    const fe_job *job = c->job;
    const ir_node *node = c->node;
    mdot_job_operator *op = c->op;
    if (fe_row_of(node)->gradient == FE_GRADIENT_BATCH_NORM) {
        bool is_frozen = fe_is_parameter_operand(job, node, 1) && !fe_is_trained_operand(job, node, 1);
        count_batch_norm(c, elements(node->inputs[1]), source->needs_gradient && !is_frozen,
                         source->needs_data_gradient);
        return;
    }
    count_forward(c);
    if (source->normalised) drop_bias(c, node);
    double before = gradient_flops(op), backward = ir_node_float(node, FE_BACKWARD_FLOPS, -1);
    if (backward != 0 && source->needs_gradient && fe_has_gradient(node)) {
        count_gradients(c, source);
        if (source->normalised && node->input_count > 2 && is_trained_operand(c, 2))
            op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written -= bytes(node->inputs[2]);
    }
    if (backward >= 0) set_backward_flops(c, backward);
    if (is_product(node)) {
        double share = product_share(node, op->setting) * ir_node_float(node, FE_SHARE, 1) * (double)job->batch;
        products[0] += share * per_sample(c, fe_forward_flops(node));
        products[1] += backward >= 0 ? backward : share * (gradient_flops(op) - before);
    }
    if (source->normalised) count_convolution_norm(c, source);
    if (source->bias != NULL) count_bias(c, source);
}
