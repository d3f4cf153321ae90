/* opaque.c — mdot.Opaque: an unknown operator in a job. The job reader states the types of its outputs (from the
 * file's value_info, or as a guess) in three lists of integers: dtypes and ranks, with one entry per output, and
 * dims, those of all outputs one after the other. */
#include "ir/ops/families.h"

static bool is_type(int64_t dtype, int64_t rank)
{
    bool exists =
        dtype == MDOT_DTYPE_STRING || (dtype > 0 && dtype <= INT32_MAX && mdot_dtype_size_bytes((mdot_dtype)dtype) > 0);
    return exists && rank >= 0 && rank <= MDOT_MAX_RANK;
}

mdot_status ir_shape_opaque(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_attr *dtypes = ir_node_attr(node, "dtypes"), *ranks = ir_node_attr(node, "ranks");
    const ir_attr *dims = ir_node_attr(node, "dims");
    int used = 0;
    for (int i = 0; i < node->output_count; i++) {
        bool has_types = dtypes != NULL && ranks != NULL && dims != NULL && i < dtypes->count && i < ranks->count;
        if (!has_types || !is_type(dtypes->ints[i], ranks->ints[i]) || ranks->ints[i] > dims->count - used)
            return ir_fail(node, err, MDOT_UNSUPPORTED, "the type and shape of output %d are unknown", i);
        ir_dim dim[MDOT_MAX_RANK];
        int rank = (int)ranks->ints[i];
        for (int k = 0; k < rank; k++) dim[k] = ir_dim_number(dims->ints[used++]);
        ir_set_type(node, i, (mdot_dtype)dtypes->ints[i], rank, dim);
    }
    return MDOT_OK;
}
