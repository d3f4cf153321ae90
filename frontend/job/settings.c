/* settings.c — an operator's canonical type and attributes. Shape rules have checked ranks, axes and heads. */
#include "frontend/job/operator_sequence.h"

#include "frontend/job/parameters.h"
#include "ir/ops/geometry.h"

#include <math.h>

static int64_t dim(const ir_value *value, int i) { return value->type.dim[i].offset; }

/* Saturates, because the shapes in a file may exceed any memory. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Product of the dimensions from `first` on. */
static int64_t extent_from(const ir_value *value, int first)
{
    int64_t product = 1;
    for (int i = first; i < value->type.rank; i++) product = times(product, dim(value, i));
    return product;
}

static int64_t elements(const ir_value *value) { return extent_from(value, 0); }

const ir_value *fe_matmul_weight(const fe_job *job, const ir_node *node)
{
    if (fe_row_of(node)->settings != FE_SETTINGS_MATMUL) return NULL;
    for (int i = 1; i >= 0; i--) {
        const ir_value *value = node->inputs[i], *other = node->inputs[1 - i];
        bool is_weight = fe_is_parameter(job, value) || (value->constant == NULL && job->once[value->id]);
        if (is_weight && value->type.rank == 2 && other->constant == NULL && !job->once[other->id]) return value;
    }
    return NULL;
}

const fe_row *fe_type_row(const fe_job *job, const ir_node *node)
{
    return fe_row_at(fe_matmul_weight(job, node) != NULL ? IR_OP_Linear : fe_row_of(node)->type);
}

typedef void (*describe_fn)(const fe_job *job, const fe_operator *op, int64_t *setting);

static void describe_window(const ir_window *w, int64_t *setting)
{
    enum { D, H, W };
    int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, padding[3] = {0};
    for (int i = 0; i < w->rank && i < 3; i++) {
        int index = w->rank < 3 ? 3 - w->rank + i : i;
        kernel[index] = w->kernel[i];
        stride[index] = w->stride[i];
        dilation[index] = w->dilation[i];
        padding[index] = w->before[i].offset + w->after[i].offset;
    }
    setting[MDOT_SETTING_KERNEL_D] = kernel[D];
    setting[MDOT_SETTING_KERNEL_H] = kernel[H];
    setting[MDOT_SETTING_KERNEL_W] = kernel[W];
    setting[MDOT_SETTING_STRIDE_D] = stride[D];
    setting[MDOT_SETTING_STRIDE_H] = stride[H];
    setting[MDOT_SETTING_STRIDE_W] = stride[W];
    setting[MDOT_SETTING_DILATION_H] = dilation[H];
    setting[MDOT_SETTING_DILATION_W] = dilation[W];
    setting[MDOT_SETTING_PADDING_H] = padding[H];
    setting[MDOT_SETTING_PADDING_W] = padding[W];
}

/* Feature maps have their channels in dimension 1. */
static void describe_map(const fe_operator *op, int64_t *setting)
{
    const ir_value *input = op->node->inputs[0], *out = op->node->outputs[0];
    if (input->type.rank < 2) return;
    setting[MDOT_SETTING_CHANNELS_IN] = dim(input, 1);
    setting[MDOT_SETTING_CHANNELS_OUT] = dim(out, 1);
    setting[MDOT_SETTING_SIZE_IN] = extent_from(input, 2);
    setting[MDOT_SETTING_SIZE_OUT] = extent_from(out, 2);
}

static void describe_convolution(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_node *node = op->node;
    ir_operands args = ir_operands_of_graph(job->graph, node, NULL);
    ir_window w;
    int64_t kernel[IR_MAX_SPATIAL] = {0};
    ir_dim extents[IR_MAX_SPATIAL];
    int rank = node->inputs[1]->type.rank - 2;
    for (int i = 0; i < rank; i++) kernel[i] = dim(node->inputs[1], 2 + i);
    if (ir_window_read(&args, rank, kernel, &w) != MDOT_OK) return;
    const ir_dim *input = node->inputs[0]->type.dim + 2;
    mdot_status status = node->op == &ir_ops[IR_OP_Conv] ? ir_window_slide(&args, &w, input, extents)
                                                         : ir_window_unslide(&args, &w, input, extents);
    if (status != MDOT_OK) return;
    describe_window(&w, setting);
    describe_map(op, setting);
    setting[MDOT_SETTING_GROUPS] = ir_node_int(node, "group", 1);
    setting[MDOT_SETTING_NORMALISED] = op->normalised;
    setting[MDOT_SETTING_BIAS] = !op->normalised && (op->bias != NULL || ir_node_input(node, 2) != NULL);
}

static void describe_pool(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    describe_map(op, setting);
    ir_operands args = ir_operands_of_graph(job->graph, op->node, NULL);
    ir_window w;
    ir_dim extents[IR_MAX_SPATIAL];
    const ir_type *input = &op->node->inputs[0]->type;
    if (ir_window_read(&args, input->rank - 2, NULL, &w) != MDOT_OK) return;
    if (ir_window_slide(&args, &w, input->dim + 2, extents) == MDOT_OK) describe_window(&w, setting);
}

static void describe_global_pool(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_value *input = op->node->inputs[0];
    setting[MDOT_SETTING_CHANNELS_IN] = setting[MDOT_SETTING_CHANNELS_OUT] = dim(input, 1);
    setting[MDOT_SETTING_SIZE_IN] = extent_from(input, 2);
    setting[MDOT_SETTING_SIZE_OUT] = 1;
}

/* Rows of the data times a parameter matrix. If both factors are data: matmuls in groups, batched over the outer
 * dimensions. */
static void describe_matmul(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_node *node = op->node;
    const ir_value *weight = fe_matmul_weight(job, node), *out = node->outputs[0];
    const int64_t batch = job->once[out->id] ? 1 : job->batch;
    if (out->type.rank < 1) return;
    const ir_value *data = weight == node->inputs[0] ? node->inputs[1] : node->inputs[0];
    int64_t columns = dim(out, out->type.rank - 1), rows = out->type.rank > 1 ? dim(out, out->type.rank - 2) : 1;
    if (weight != NULL) {
        int64_t other_index = elements(weight) / (columns ? columns : 1);
        bool from_left = weight == node->inputs[0];
        setting[MDOT_SETTING_CHANNELS_OUT] = from_left ? rows : columns;
        setting[MDOT_SETTING_CHANNELS_IN] = from_left ? elements(weight) / (rows ? rows : 1) : other_index;
        setting[MDOT_SETTING_SIZE_IN] =
            elements(data) / (setting[MDOT_SETTING_CHANNELS_IN] ? setting[MDOT_SETTING_CHANNELS_IN] : 1) / batch;
        setting[MDOT_SETTING_SIZE_OUT] = setting[MDOT_SETTING_SIZE_IN];
        setting[MDOT_SETTING_BIAS] = op->bias != NULL || ir_node_input(node, 2) != NULL;
        return;
    }
    if (node->inputs[0]->type.rank == 1 || ir_node_input(node, 1)->type.rank == 1) { /* rows times a vector */
        rows = columns;
        columns = 1;
    }
    double flops_per_channel = 2 * (double)elements(out);
    setting[MDOT_SETTING_CHANNELS_IN] =
        flops_per_channel > 0 ? (int64_t)fmin(fe_forward_flops(node) / flops_per_channel, 0x1p62) : 0;
    setting[MDOT_SETTING_CHANNELS_OUT] = columns;
    setting[MDOT_SETTING_SIZE_OUT] = setting[MDOT_SETTING_SIZE_IN] = rows;
    int64_t matrix = times(rows, columns), count = matrix > 0 ? elements(out) / matrix : 0;
    setting[MDOT_SETTING_GROUPS] = count / batch;
    if (node->op == &ir_ops[IR_OP_Opaque]) {
        setting[MDOT_SETTING_GROUPS] = 0; /* rows times the matrix of their group: as many as for one matrix */
        setting[MDOT_SETTING_SIZE_OUT] = setting[MDOT_SETTING_SIZE_IN] =
            elements(out) / (columns ? columns : 1) / batch;
    } else if (count % batch != 0 && rows % batch == 0) {
        /* The rows are the samples, for example in a similarity matrix. */
        setting[MDOT_SETTING_GROUPS] = count;
        setting[MDOT_SETTING_SIZE_OUT] = setting[MDOT_SETTING_SIZE_IN] = rows / batch;
    }
}

/* Q is [B, H, N, D] or [B, N, H * D]. In both, the last but one dimension is the query count. */
static void describe_attention(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_node *node = op->node;
    const ir_type *q = &node->inputs[0]->type, *k = &node->inputs[1]->type;
    bool split = q->rank == 4;
    int64_t heads = split ? q->dim[1].offset : ir_node_int(node, "q_num_heads", 1);
    setting[MDOT_SETTING_HEADS] = heads;
    setting[MDOT_SETTING_HEAD_SIZE] = split ? q->dim[3].offset : q->dim[2].offset / heads;
    setting[MDOT_SETTING_QUERIES] = q->dim[q->rank - 2].offset;
    setting[MDOT_SETTING_KEYS] = k->dim[k->rank - 2].offset;
    const ir_value *past = ir_node_input(node, 4);
    if (past != NULL && past->type.rank == 4 &&
        __builtin_add_overflow(setting[MDOT_SETTING_KEYS], dim(past, 2), &setting[MDOT_SETTING_KEYS]))
        setting[MDOT_SETTING_KEYS] = INT64_MAX;
}

/* The axis of the data or of the result; by default the first one, or the last one. */
static void describe_axis(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    fe_settings settings = fe_row_of(op->node)->settings;
    const ir_value *value = settings == FE_SETTINGS_RESULT_AXIS ? op->node->outputs[0] : op->node->inputs[0];
    int rank = value->type.rank, axis = ir_node_axis(op->node, settings == FE_SETTINGS_LAST_AXIS ? -1 : 0, rank);
    setting[MDOT_SETTING_AXIS] = rank - axis;
    setting[MDOT_SETTING_EXTENT] = dim(value, axis);
}

static void describe_channels(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    describe_map(op, setting);
    setting[MDOT_SETTING_GROUPS] = ir_node_int(op->node, "num_groups", 0);
    setting[MDOT_SETTING_EXTENT] = ir_node_int(op->node, "size", 0);
}

static void describe_reduction(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    int64_t out = elements(op->node->outputs[0]);
    if (out > 0) setting[MDOT_SETTING_EXTENT] = elements(op->node->inputs[0]) / out;
}

static void describe_recurrent(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_value *x = op->node->inputs[0], *recurrence = op->node->inputs[2];
    setting[MDOT_SETTING_CHANNELS_IN] = dim(x, 2);
    setting[MDOT_SETTING_CHANNELS_OUT] = dim(recurrence, 2);
    setting[MDOT_SETTING_SIZE_IN] = times(dim(x, 0), dim(x, 1)) / job->batch;
    setting[MDOT_SETTING_SIZE_OUT] = setting[MDOT_SETTING_SIZE_IN];
    setting[MDOT_SETTING_EXTENT] = dim(x, ir_node_int(op->node, "layout", 0) != 0 ? 1 : 0);
    setting[MDOT_SETTING_DIRECTIONS] = dim(recurrence, 0);
    setting[MDOT_SETTING_BIAS] = ir_node_input(op->node, 3) != NULL;
}

static const describe_fn describe_of[FE_SETTINGS_COUNT] = {
    [FE_SETTINGS_CONVOLUTION] = describe_convolution, [FE_SETTINGS_POOL] = describe_pool,
    [FE_SETTINGS_GLOBAL_POOL] = describe_global_pool, [FE_SETTINGS_CHANNELS] = describe_channels,
    [FE_SETTINGS_MATMUL] = describe_matmul,           [FE_SETTINGS_ATTENTION] = describe_attention,
    [FE_SETTINGS_FIRST_AXIS] = describe_axis,         [FE_SETTINGS_LAST_AXIS] = describe_axis,
    [FE_SETTINGS_RESULT_AXIS] = describe_axis,        [FE_SETTINGS_REDUCTION] = describe_reduction,
    [FE_SETTINGS_RECURRENT] = describe_recurrent,
};

void fe_operator_settings(const fe_job *job, const fe_operator *op, int64_t *setting)
{
    const ir_node *node = op->node;
    for (int i = 0; i < node->input_count; i++)
        setting[MDOT_SETTING_INPUTS] += node->inputs[i] != NULL && node->inputs[i]->constant == NULL;
    describe_fn describe = describe_of[fe_row_of(node)->settings];
    if (node->op == &ir_ops[IR_OP_Opaque] && describe != describe_matmul) return;
    if (describe != NULL && node->inputs[0] != NULL && op->result != NULL) describe(job, op, setting);
}
