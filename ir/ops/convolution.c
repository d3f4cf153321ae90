/* convolution.c — Conv and ConvTranspose, with groups, in any number of spatial dimensions.
 *
 * Evaluation loops over every output (Conv) or input (ConvTranspose) position and every tap of the kernel.
 */
#include "ir/ops/geometry.h"
#include "ir/ops/operands.h"

typedef struct convolution {
    ir_type input, weight, output;
    int64_t groups, in_per_group, out_per_group;
    ir_window window;
} convolution;

static bool is_transposed(const ir_node *node) { return ir_node_opcode(node) == IR_OP_ConvTranspose; }

/* Weights are [M, C / groups, kernel …]; for a transposed convolution [C, M / groups, kernel …]. */
static mdot_status check_channels(const ir_operands *args, convolution *c)
{
    const ir_dim *w = c->weight.dim;
    c->groups = ir_node_int(args->node, "group", 1);
    if (!ir_dim_is_number(w[0]) || !ir_dim_is_number(w[1]) || !ir_dim_is_number(c->input.dim[1]))
        return ir_unsupported(args, "the numbers of channels must be fixed");
    int64_t channels = c->input.dim[1].offset, first = w[0].offset, second = w[1].offset;
    if (c->groups < 1 || first % c->groups != 0)
        return ir_malformed(args, "%lld filters are not divisible into %lld groups", (long long)first,
                            (long long)c->groups);
    bool transposed = is_transposed(args->node);
    c->in_per_group = transposed ? first / c->groups : second;
    c->out_per_group = transposed ? second : first / c->groups;
    int64_t expected;
    if (__builtin_mul_overflow(c->in_per_group, c->groups, &expected) || expected != channels)
        return ir_malformed(args, "the weights require %lld groups of %lld channels, but the input has %lld channels",
                            (long long)c->groups, (long long)c->in_per_group, (long long)channels);
    int64_t out;
    if (__builtin_mul_overflow(c->out_per_group, c->groups, &out)) return ir_malformed(args, "too many channels");
    c->output = c->input;
    c->output.dim[1] = ir_dim_number(out);
    return MDOT_OK;
}

static mdot_status check_bias(const ir_operands *args, const convolution *c)
{
    ir_type bias;
    if (!ir_operand_given(args, 2)) return MDOT_OK;
    mdot_status status = ir_operand_need(args, 2, "bias", 1, &bias);
    if (status == MDOT_OK) status = ir_operand_need_same(args, 2, 0);
    if (status != MDOT_OK || ir_dim_equal(bias.dim[0], c->output.dim[1])) return status;
    return ir_malformed(args, "the bias must have one element for each of %lld channels",
                        (long long)c->output.dim[1].offset);
}

static mdot_status read_convolution(const ir_operands *args, convolution *c)
{
    BS_TRY(ir_operand_need(args, 0, "input", -1, &c->input));
    BS_TRY(ir_operand_need_floats(args, 0, "input"));
    BS_TRY(ir_operand_need(args, 1, "weights", c->input.rank, &c->weight));
    BS_TRY(ir_operand_need_same(args, 1, 0));
    int64_t kernel[IR_MAX_SPATIAL] = {0};
    int spatial = c->input.rank - 2;
    for (int i = 0; i < spatial; i++) {
        if (!ir_dim_is_number(c->weight.dim[2 + i])) return ir_unsupported(args, "the kernel's extent is symbolic");
        kernel[i] = c->weight.dim[2 + i].offset;
    }
    BS_TRY(ir_window_read(args, spatial, kernel, &c->window));
    BS_TRY(check_channels(args, c));
    BS_TRY(check_bias(args, c));
    return is_transposed(args->node) ? ir_window_unslide(args, &c->window, c->input.dim + 2, c->output.dim + 2)
                                     : ir_window_slide(args, &c->window, c->input.dim + 2, c->output.dim + 2);
}

mdot_status ir_result_convolution(const ir_operands *args, ir_type *out_type)
{
    convolution c;
    mdot_status status = read_convolution(args, &c);
    if (status == MDOT_OK) *out_type = c.output;
    return status;
}

/* One multiply-add per weight at each position of the result (Conv) or of the input (ConvTranspose). */
void ir_cost_convolution(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_value *map = is_transposed(node) ? node->inputs[0] : node->outputs[0];
    int64_t channels = map->type.rank > 1 ? ir_dim_at(map->type.dim[1], length) : 0;
    double positions = channels > 0 ? ir_value_elements(map, length) / (double)channels : 0;
    out_cost->flops = 2 * positions * ir_value_elements(node->inputs[1], length);
    if (ir_node_input(node, 2) != NULL) out_cost->flops += ir_value_elements(node->outputs[0], length);
}

/* One group of one sample. `slid` is the side with one position per window, `wide` the other. */
typedef struct plane {
    const ir_window *window;
    const int64_t *slid_dims, *wide_dims;
    int64_t slid_count, wide_count, taps;
} plane;

/* Called for every (window, tap) inside: position on the slid side, on the wide side, index of the tap. */
typedef void (*visit_fn)(void *user, int64_t slid, int64_t wide, int64_t tap);

static void for_each_tap(const plane *p, visit_fn visit, void *user)
{
    int64_t position[IR_MAX_SPATIAL] = {0};
    for (int64_t s = 0; s < p->slid_count; s++) {
        int64_t tap[IR_MAX_SPATIAL] = {0};
        for (int64_t t = 0; t < p->taps; t++) {
            int64_t wide = ir_window_tap(p->window, position, tap, p->wide_dims);
            if (wide >= 0) visit(user, s, wide, t);
            ir_next_index(p->window->rank, p->window->kernel, tap);
        }
        ir_next_index(p->window->rank, p->slid_dims, position);
    }
}

typedef struct group { /* first channel */
    const convolution *c;
    const double *in, *weight;
    double *out;
    int64_t in_plane, out_plane, taps;
} group;

static void add_products(void *user, int64_t slid, int64_t wide, int64_t tap)
{
    const group *g = user;
    for (int64_t m = 0; m < g->c->out_per_group; m++) {
        double sum = 0;
        for (int64_t c = 0; c < g->c->in_per_group; c++)
            sum += g->weight[(m * g->c->in_per_group + c) * g->taps + tap] * g->in[c * g->in_plane + wide];
        g->out[m * g->out_plane + slid] += sum;
    }
}

static void scatter_products(void *user, int64_t slid, int64_t wide, int64_t tap)
{
    const group *g = user;
    for (int64_t c = 0; c < g->c->in_per_group; c++) {
        double x = g->in[c * g->in_plane + slid];
        for (int64_t m = 0; m < g->c->out_per_group; m++)
            g->out[m * g->out_plane + wide] += g->weight[(c * g->c->out_per_group + m) * g->taps + tap] * x;
    }
}

mdot_status ir_eval_convolution(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    convolution c;
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(read_convolution(&args, &c));
    if (out[0]->count == 0) return MDOT_OK;
    bool transposed = is_transposed(node);
    const ir_wide *x = input[0], *slid = transposed ? x : out[0], *wide = transposed ? out[0] : x;
    plane p = {.window = &c.window,
               .slid_dims = slid->dims + 2,
               .wide_dims = wide->dims + 2,
               .slid_count = ir_product(slid->dims, 2, slid->rank),
               .wide_count = ir_product(wide->dims, 2, wide->rank),
               .taps = ir_product(c.window.kernel, 0, c.window.rank)};
    group g = {.c = &c, .taps = p.taps};
    g.in_plane = transposed ? p.slid_count : p.wide_count;
    g.out_plane = transposed ? p.wide_count : p.slid_count;
    const ir_wide *bias = ir_tensor_input(node, input, 2);
    ir_axis_view view = ir_view_axis(out[0], 1);
    for (int64_t k = 0; bias != NULL && k < out[0]->count; k++) out[0]->f[k] = bias->f[k / view.inner % view.extent];
    for (int64_t k = 0; k < x->dims[0] * c.groups; k++) {
        g.in = x->f + k * c.in_per_group * g.in_plane;
        g.out = out[0]->f + k * c.out_per_group * g.out_plane;
        g.weight = input[1]->f + k % c.groups * c.in_per_group * c.out_per_group * p.taps;
        for_each_tap(&p, transposed ? scatter_products : add_products, &g);
    }
    return MDOT_OK;
}
