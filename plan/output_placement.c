/* output_placement.c — chooses the placement of a value about to be computed. A value needs no buffer if the reader
 * only moves it. */
#include "plan/plan_builder.h"

/* The graph output that is this value, or a direct reshape of it; -1: none. */
static int output_of(const pl_builder *b, const ir_value *v)
{
    for (;;) {
        const pl_value *info = pl_info(b, v);
        if (info->output >= 0) return info->output;
        if (info->use_count != 1 || info->uses[0].node->op->lowering != IR_LOWER_ALIAS) return -1;
        v = info->uses[0].node->outputs[0];
    }
}

/* The Concat that is the value's only reader, possibly through reshapes by one-element dimensions. */
static const pl_use *concat_of(const pl_builder *b, const ir_value *v)
{
    for (;;) {
        const pl_value *info = pl_info(b, v);
        if (info->use_count != 1 || info->output >= 0) return NULL;
        const pl_use *use = &info->uses[0];
        if (ir_node_opcode(use->node) == IR_OP_Concat) return use;
        if (use->node->op->lowering != IR_LOWER_ALIAS) return NULL;
        const ir_value *next_value = use->node->outputs[0];
        if (!ir_only_units_differ(&v->type, &next_value->type)) return NULL;
        v = next_value;
    }
}

/* Places the value inside a Concat's result. The first part to arrive places the Concat. */
static bool place_in_concat(pl_builder *b, const ir_value *v, int trailing, pl_placement *out)
{
    const pl_use *use = concat_of(b, v);
    if (use == NULL) return false;
    const ir_value *whole = use->node->outputs[0];
    pl_placement part;
    pl_matrix matrix;
    if (pl_info(b, whole)->state != PL_PLACED && !pl_place_output(b, whole, PL_PLACEMENT_ANYWHERE)) return false;
    if (!pl_concat_part(b, use->node, use->operand, &part)) return false;
    *out = part;
    pl_transfer_strides(&use->node->inputs[use->operand]->type, part.stride, &v->type, out->stride);
    return trailing == PL_PLACEMENT_ANYWHERE || pl_matrix_view(out, &v->type, trailing, &matrix);
}

bool pl_place_output(pl_builder *b, const ir_value *v, int trailing)
{
    pl_value *info = pl_info(b, v);
    pl_placement placement;
    if (trailing < PL_PLACEMENT_ANYWHERE || !place_in_concat(b, v, trailing, &placement)) {
        int output = trailing == PL_PLACEMENT_TYPED ? info->output : output_of(b, v);
        int buffer = output >= 0 ? b->graph->input_count + output : pl_add_buffer(b, PL_SCRATCH, v->name, &v->type);
        if (buffer < 0) return false;
        placement = (pl_placement){.buffer = buffer, .dense = true};
    }
    info->placement = placement;
    info->state = PL_PLACED;
    return true;
}
