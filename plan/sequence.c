/* sequence.c — operators that are not loop nests: scans, sorting, scatter. Their operands are whole dense buffers. */
#include "plan/emitters.h"

#include "plan/plan_builder.h"

#include <string.h>

static const struct sequence_row {
    pl_sequence operation;
    unsigned data; /* bit i: the kernel reads input i; the others are resolved here */
    bool has_axis; /* the axis is an attribute */
    int64_t axis;  /* default of the axis */
} rows[IR_OP_COUNT] = {
    [IR_OP_CumSum] = {PL_SEQ_CUMULATE, 1u, false, 0},
    [IR_OP_TopK] = {PL_SEQ_TOP_K, 1u, true, -1},
    [IR_OP_ScatterElements] = {PL_SEQ_SCATTER_ELEMENTS, 15u, true, 0},
    [IR_OP_ScatterND] = {PL_SEQ_SCATTER_ND, 15u, true, 0},
    [IR_OP_TensorScatter] = {PL_SEQ_TENSOR_SCATTER, 7u, true, -2},
};

static bool read_reduction(const ir_node *node, pl_reducer *out)
{
    static const struct {
        const char *name;
        pl_reducer reducer;
    } names[] = {{"none", PL_REDUCE_NONE},
                 {"add", PL_REDUCE_SUM},
                 {"mul", PL_REDUCE_PROD},
                 {"max", PL_REDUCE_MAX},
                 {"min", PL_REDUCE_MIN}};
    const char *name = ir_node_string(node, "reduction", "none");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(name, names[k].name) != 0) continue;
        *out = names[k].reducer;
        return true;
    }
    return false;
}

/* CumSum's axis is an input. */
static bool read_axis(const ir_node *node, const struct sequence_row *row, int *out_axis)
{
    int rank = node->inputs[0]->type.rank;
    int64_t axis;
    *out_axis = row->has_axis ? ir_node_axis(node, row->axis, rank) : 0;
    if (row->operation != PL_SEQ_CUMULATE) return true;
    if (!ir_value_int(node->inputs[1], &axis)) return false;
    *out_axis = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* An unread second output gets no buffer; the first always has one. */
static bool place_outputs(pl_builder *b, const ir_node *node, pl_sequential *sequential)
{
    for (int k = 0; k < 2; k++) {
        sequential->output[k] = -1;
        const ir_value *v = k < node->output_count ? node->outputs[k] : NULL;
        if (v == NULL || (k > 0 && v->use_count == 0)) continue;
        if (!pl_place_output(b, v, PL_PLACEMENT_TYPED)) return false;
        sequential->output[k] = pl_info(b, v)->placement.buffer;
    }
    return true;
}

mdot_status pl_emit_sequential(pl_builder *b, const ir_node *node)
{
    const struct sequence_row *row = &rows[ir_node_opcode(node)];
    bool is_scan = row->operation == PL_SEQ_CUMULATE, is_sort = row->operation == PL_SEQ_TOP_K;
    pl_sequential sequential = {.operation = row->operation,
                                .exclusive = is_scan && ir_node_int(node, "exclusive", 0) != 0,
                                .reverse = is_scan && ir_node_int(node, "reverse", 0) != 0,
                                .largest = is_sort && ir_node_int(node, "largest", 1) != 0,
                                .sorted = is_sort && ir_node_int(node, "sorted", 1) != 0,
                                .circular = strcmp(ir_node_string(node, "mode", "linear"), "circular") == 0};
    pl_begin_kernel(b, node);
    if (!read_axis(node, row, &sequential.axis)) {
        pl_reject(b, node, "the axis is known only at run time");
        return pl_fault(b);
    }
    if (!read_reduction(node, &sequential.reduction)) {
        pl_reject(b, node, "the reduction is unknown");
        return pl_fault(b);
    }
    for (int k = 0; k < 4; k++) {
        const ir_value *v = ir_node_input(node, k);
        sequential.input[k] = -1;
        if (v == NULL || !(row->data & 1u << k)) continue;
        const pl_placement *placement = pl_placement_of(b, v);
        if (placement == NULL) return pl_fault(b);
        sequential.input[k] = placement->buffer;
    }
    if (!place_outputs(b, node, &sequential)) return pl_fault(b);
    return pl_end_kernel(b, PL_SEQUENTIAL, node->name, &(pl_kernel){.sequential = sequential});
}
