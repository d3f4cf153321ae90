/* opaque.c — mdot.Opaque: an operator that mdot does not know, in a job. What a node of it gives is what its reader
 * found out (the file's value_info, or a guess): dtype_<i>, an integer, and dims_<i>, integers, for output i.
 */
#include "ir/ops/families.h"

#include <stdio.h>

enum { NAME_BYTES = 32 };

mdot_status ir_shape_opaque(ir_graph *graph, ir_node *node, mdot_error *err)
{
    (void)graph;
    for (int i = 0; i < node->output_count; i++) {
        char dtype_name[NAME_BYTES], dims_name[NAME_BYTES];
        snprintf(dtype_name, sizeof dtype_name, "dtype_%d", i);
        snprintf(dims_name, sizeof dims_name, "dims_%d", i);
        const ir_attr *dims = ir_node_attr(node, dims_name);
        int rank = dims ? dims->count : 0;
        ir_dim dim[MDOT_MAX_RANK];
        if (!ir_node_attr(node, dtype_name) || rank > MDOT_MAX_RANK) {
            return ir_fail(node, err, MDOT_UNSUPPORTED, "nothing tells what output %d is", i);
        }
        for (int k = 0; k < rank; k++) dim[k] = ir_dim_number(dims->ints[k]);
        ir_set_type(node, i, (mdot_dtype)ir_node_int(node, dtype_name, MDOT_DTYPE_F32), rank, dim);
    }
    return MDOT_OK;
}

void ir_cost_opaque(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_traffic(node, length, out_cost);
    out_cost->flops = 0;
}
