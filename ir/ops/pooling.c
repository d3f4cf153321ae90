/* pooling.c — MaxPool, AveragePool, LpPool, their global forms, and LRN, which sums over neighbouring channels. */
#include "ir/ops/geometry.h"
#include "ir/ops/operands.h"

#include <math.h>

static mdot_status need_map(const ir_operands *args, ir_type *out_type)
{
    mdot_status status = ir_operand_need(args, 0, "input", -1, out_type);
    if (status != MDOT_OK || out_type->rank > 2) return status;
    return ir_malformed(args, "an input of %d dimensions lacks spatial dimensions", out_type->rank);
}

static mdot_status read_pool(const ir_operands *args, ir_window *window, ir_type *out_type)
{
    ir_type input;
    BS_TRY(need_map(args, &input));
    BS_TRY(ir_window_read(args, input.rank - 2, NULL, window));
    *out_type = input;
    return ir_window_slide(args, window, input.dim + 2, out_type->dim + 2);
}

/* MaxPool's second output holds the positions of the maxima. */
mdot_status ir_outputs_pool(const ir_operands *args, int output, ir_type *out_type)
{
    ir_window window;
    BS_TRY(read_pool(args, &window, out_type));
    if (output == 1) out_type->dtype = MDOT_DTYPE_I64;
    return MDOT_OK;
}

void ir_cost_pool(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_attr *kernel = ir_node_ints(node, "kernel_shape");
    double taps = 1;
    for (int i = 0; kernel != NULL && i < kernel->count; i++) taps *= (double)kernel->ints[i];
    out_cost->flops = taps * ir_value_elements(node->outputs[0], length);
}

typedef struct pooled { /* result for one window of one channel */
    double value;
    int64_t at; /* the maximum's position in the channel; -1: none */
    int64_t inside;
} pooled;

/* NaN is the greatest number, as for ReduceMax. */
static bool is_greater(double x, double bound) { return x > bound || (isnan(x) && !isnan(bound)); }

static pooled pool_window(const ir_window *w, const int64_t *position, const ir_wide *x, int64_t channel)
{
    pooled p = {.at = -1};
    int64_t tap[IR_MAX_SPATIAL] = {0}, plane = ir_product(x->dims, 2, x->rank);
    do {
        int64_t offset = ir_window_tap(w, position, tap, x->dims + 2);
        if (offset < 0) continue;
        double element = ir_wide_get(x, channel * plane + offset);
        p.inside++;
        if (p.at < 0 || is_greater(element, p.value)) {
            p.at = offset;
            p.value = element;
        }
    } while (ir_next_index(w->rank, w->kernel, tap));
    return p;
}

static void store(ir_wide *out, int64_t offset, double value)
{
    if (out->f != NULL)
        out->f[offset] = value;
    else
        out->i[offset] = ir_float_to_integer(out->dtype, value); /* a window without elements gives the type's
                                                                  * minimum */
}

/* With storage_order 1, the first spatial dimension varies fastest in positions. */
static int64_t stored_index(const ir_node *node, const ir_wide *x, int64_t channel, int64_t offset)
{
    int64_t plane = ir_product(x->dims, 2, x->rank);
    if (ir_node_int(node, "storage_order", 0) == 0 || offset < 0) return channel * plane + offset;
    int64_t index = 0, scale = plane;
    for (int i = x->rank - 1; i >= 2; i--) {
        scale /= x->dims[i];
        index += offset % x->dims[i] * scale;
        offset /= x->dims[i];
    }
    return channel * plane + index;
}

mdot_status ir_eval_max_pool(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_window window;
    ir_type type;
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(read_pool(&args, &window, &type));
    int64_t plane = ir_product(out[0]->dims, 2, out[0]->rank), position[IR_MAX_SPATIAL] = {0};
    for (int64_t k = 0; k < out[0]->count; k++) {
        pooled p = pool_window(&window, position, input[0], k / plane);
        store(out[0], k, p.at < 0 ? -INFINITY : p.value);
        if (ir_node_wants(node, 1)) out[1]->i[k] = stored_index(node, input[0], k / plane, p.at);
        ir_next_index(window.rank, out[0]->dims + 2, position);
    }
    return MDOT_OK;
}

/* The number of elements over which a window averages: those in the input, and with count_include_pad also those in
 * the padding. Elements beyond the padding, which ceil_mode lets it reach, are excluded. */
static int64_t averaged(const ir_window *w, const int64_t *position, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < w->rank; i++) {
        int64_t taps = 0;
        for (int64_t t = 0; t < w->kernel[i]; t++) {
            int64_t offset = position[i] * w->stride[i] + t * w->dilation[i];
            taps += offset < w->before[i].offset + dims[i] + w->after[i].offset;
        }
        count *= taps;
    }
    return count;
}

static double sum_window(const ir_window *w, const int64_t *position, const ir_wide *x, int64_t channel, double power)
{
    int64_t tap[IR_MAX_SPATIAL] = {0}, plane = ir_product(x->dims, 2, x->rank);
    double sum = 0;
    do {
        int64_t offset = ir_window_tap(w, position, tap, x->dims + 2);
        double element = offset >= 0 ? x->f[channel * plane + offset] : 0;
        sum += power == 0 ? element : pow(fabs(element), power);
    } while (ir_next_index(w->rank, w->kernel, tap));
    return sum;
}

/* AveragePool, and LpPool: the p-th root of summed p-th powers. */
mdot_status ir_eval_sum_pool(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    ir_window window;
    ir_type type;
    ir_operands args = ir_operands_of_tensors(node, in, err);
    BS_TRY(ir_operand_need_floats(&args, 0, "input"));
    BS_TRY(read_pool(&args, &window, &type));
    bool average = ir_node_opcode(node) == IR_OP_AveragePool, padded = ir_node_int(node, "count_include_pad", 0) != 0;
    double power = average ? 0 : (double)ir_node_int(node, "p", 2);
    int64_t plane = ir_product(out[0]->dims, 2, out[0]->rank), position[IR_MAX_SPATIAL] = {0};
    for (int64_t k = 0; k < out[0]->count; k++) {
        double sum = sum_window(&window, position, in[0], k / plane, power);
        int64_t count = padded ? averaged(&window, position, in[0]->dims + 2)
                               : pool_window(&window, position, in[0], k / plane).inside;
        out[0]->f[k] = average ? sum / (double)count : pow(sum, 1 / power);
        ir_next_index(window.rank, out[0]->dims + 2, position);
    }
    return MDOT_OK;
}

mdot_status ir_result_global_pool(const ir_operands *args, ir_type *out_type)
{
    mdot_status status = need_map(args, out_type);
    for (int i = 2; status == MDOT_OK && i < out_type->rank; i++) out_type->dim[i] = ir_dim_number(1);
    return status != MDOT_OK ? status : ir_operand_need_floats(args, 0, "input");
}

void ir_cost_global_pool(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    out_cost->flops = ir_value_elements(node->inputs[0], length);
}

mdot_status ir_eval_global_pool(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int64_t plane = ir_product(input[0]->dims, 2, input[0]->rank);
    bool greatest = ir_node_opcode(node) == IR_OP_GlobalMaxPool;
    for (int64_t k = 0; k < out[0]->count; k++) {
        double result = greatest ? -INFINITY : 0;
        for (int64_t i = 0; i < plane; i++) {
            double element = input[0]->f[k * plane + i];
            if (!greatest)
                result += element / (double)plane;
            else if (is_greater(element, result))
                result = element;
        }
        out[0]->f[k] = result;
    }
    return MDOT_OK;
}

mdot_status ir_result_lrn(const ir_operands *args, ir_type *out_type)
{
    mdot_status status = need_map(args, out_type);
    if (status == MDOT_OK) status = ir_operand_need_floats(args, 0, "input");
    if (status != MDOT_OK || ir_node_int(args->node, "size", 0) > 0) return status;
    return ir_malformed(args, "the attribute size is missing or not positive");
}

/* A square and a sum for each neighbour, then scale, power and quotient. */
void ir_cost_lrn(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    out_cost->flops = (2 * (double)ir_node_int(node, "size", 0) + 4) * ir_value_elements(node->inputs[0], length);
}

/* y = x / (bias + alpha / size * sum of squares over `size` channels around it) ^ beta (ONNX LRN-13). */
mdot_status ir_eval_lrn(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_axis_view view = ir_view_axis(input[0], 1);
    int64_t size = ir_node_int(node, "size", 0), before = (size - 1) / 2, after = size - 1 - before;
    double alpha = ir_node_float(node, "alpha", 1e-4), beta = ir_node_float(node, "beta", 0.75);
    double bias = ir_node_float(node, "bias", 1);
    for (int64_t k = 0; k < out[0]->count; k++) {
        int64_t channel = k / view.inner % view.extent;
        double squares = 0;
        for (int64_t c = channel - before; c <= channel + after; c++) {
            if (c < 0 || c >= view.extent) continue;
            double x = input[0]->f[k + (c - channel) * view.inner];
            squares += x * x;
        }
        out[0]->f[k] = input[0]->f[k] / pow(bias + alpha / (double)size * squares, beta);
    }
    return MDOT_OK;
}
