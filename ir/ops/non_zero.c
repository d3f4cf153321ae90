/* non_zero.c — NonZero: the indices of the elements that are not 0, one column for each.
 *
 * The number of columns depends on data. The shape rule states the bound: one column for each element, as if none were
 * 0. The evaluation makes as many columns as there are. The pass bound_nonzero closes the gap between the two.
 */
#include "ir/ops/operands.h"

static bool is_nonzero(const ir_wide *x, int64_t i)
{
    return x->f != NULL ? x->f[i] != 0 : x->i[i] != 0; /* NaN is not 0 */
}

static int64_t count_nonzero(const ir_wide *x)
{
    int64_t count = 0;
    for (int64_t i = 0; i < x->count; i++) count += is_nonzero(x, i);
    return count;
}

static mdot_status need_rank(const ir_operands *args, const ir_type *input)
{
    if (input->rank > 0) return MDOT_OK;
    return ir_unsupported(args, "the indices of a scalar are unsupported");
}

static mdot_status bound_result(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    ir_dim bound = ir_dim_number(1);
    BS_TRY(ir_operand_need(args, 0, "input", -1, &in));
    BS_TRY(need_rank(args, &in));
    for (int i = 0; i < in.rank; i++) {
        if (ir_dim_mul(bound, in.dim[i], &bound)) continue;
        return ir_unsupported(args,
                              "the number of elements depends on data, and its bound, the size of the input, is not a "
                              "multiple of the length: bind one of the dimensions with --dim");
    }
    *out_type = (ir_type){MDOT_DTYPE_I64, 2, {ir_dim_number(in.rank), bound}};
    return MDOT_OK;
}

mdot_status ir_shape_non_zero(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_tensor *constant = node->inputs[0]->constant;
    if (constant == NULL || constant->data == NULL || constant->rank == 0)
        return ir_shape_by(graph, node, bound_result, err);
    ir_arena *scratch = ir_arena_create(0);
    const ir_wide *x = scratch != NULL ? ir_wide_from_tensor(scratch, constant) : NULL;
    mdot_status status = x != NULL ? MDOT_OK : ir_fail_memory(node, err);
    if (status == MDOT_OK)
        ir_set_type(node, 0, MDOT_DTYPE_I64, 2, (ir_dim[]){ir_dim_number(x->rank), ir_dim_number(count_nonzero(x))});
    ir_arena_destroy(scratch);
    return status;
}

mdot_status ir_eval_non_zero(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = input[0];
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type type = {.rank = x->rank};
    BS_TRY(need_rank(&args, &type));
    int64_t index[MDOT_MAX_RANK] = {0}, columns = count_nonzero(x), column = 0;
    type = (ir_type){MDOT_DTYPE_I64, 2, {ir_dim_number(x->rank), ir_dim_number(columns)}};
    mdot_status status = ir_make_typed(arena, node, &type, &out[0], err);
    for (int64_t i = 0; i < x->count && status == MDOT_OK; i++) {
        if (is_nonzero(x, i)) {
            for (int d = 0; d < x->rank; d++) out[0]->i[d * columns + column] = index[d];
            column++;
        }
        ir_next_index(x->rank, x->dims, index);
    }
    return status;
}
