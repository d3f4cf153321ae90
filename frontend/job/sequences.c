/* sequences.c — rewrites lists of tensors with known members as a Split and its results. PyTorch's dynamo exporter
 * makes such lists from unbind and split (SplitToSequence, SequenceAt). */
#include "frontend/job/job_rules.h"
#include "frontend/job/job_tables.h"

typedef struct list {
    ir_value *member[IR_MAX_KNOWN];
    int count;
} list;

static bool make_whole(const int64_t *extents, int count, int64_t whole)
{
    for (int i = 0; i < count; i++) {
        if (extents[i] < 0 || extents[i] > whole) return false;
        whole -= extents[i];
    }
    return count > 0 && whole == 0;
}

/* Reads the extents of the parts: the list in the operand, equal parts of the operand's one number, or parts of
 * extent 1. */
static bool read_extents(const ir_node *node, int64_t whole, int64_t extents[static IR_MAX_KNOWN], int *out_count)
{
    const ir_value *operand = ir_node_input(node, 1);
    if (operand != NULL && operand->type.rank == 1)
        return ir_value_ints(operand, extents, out_count) && make_whole(extents, *out_count, whole);
    int64_t extent = 1;
    if (operand != NULL && !ir_value_int(operand, &extent)) return false;
    if (extent < 1 || whole < 1 || (whole - 1) / extent >= IR_MAX_KNOWN) return false;
    for (*out_count = 0; whole > 0; whole -= extent) extents[(*out_count)++] = whole < extent ? whole : extent;
    return true;
}

static ir_value *without_axis(ir_builder *b, ir_value *part, int axis)
{
    ir_type type = part->type;
    for (int i = axis; i + 1 < type.rank; i++) type.dim[i] = type.dim[i + 1];
    return ir_build_reshape(b, part, type.dim, type.rank - 1);
}

static bool split(ir_builder *b, const ir_node *node, list *out)
{
    ir_value *x = node->input_count > 0 ? node->inputs[0] : NULL;
    int64_t extents[IR_MAX_KNOWN], axis = ir_node_int(node, "axis", 0);
    if (x == NULL || x->type.rank < 1) return false;
    if (axis < 0) axis += x->type.rank;
    if (axis < 0 || axis >= x->type.rank || !read_extents(node, x->type.dim[axis].offset, extents, &out->count))
        return false;
    if (!ir_build_split(b, x, axis, extents, out->count, out->member)) return false;
    /* ONNX ignores keepdims if `split` is present. ONNX Runtime honours it for parts of extent 1, as PyTorch
     * expects. */
    bool drops = !ir_node_int(node, "keepdims", 1) && out->count == x->type.dim[axis].offset;
    for (int i = 0; i < out->count && drops; i++) out->member[i] = without_axis(b, out->member[i], (int)axis);
    return b->status == MDOT_OK;
}

/* Finds the index that a SequenceAt reads, counted from the start. False: the reader is another operator, or the
 * index depends on data. */
static bool index_of(const ir_node *reader, const ir_value *sequence, int count, int64_t *out_index)
{
    if (fe_job_op_role_of(reader) != FE_JOB_OP_MEMBER) return false;
    if (reader->input_count != 2 || reader->inputs[0] != sequence) return false;
    if (reader->inputs[1] == NULL || !ir_value_int(reader->inputs[1], out_index)) return false;
    if (*out_index < 0) *out_index += count;
    return *out_index >= 0 && *out_index < count;
}

void fe_job_split_list(ir_builder *b, ir_node *node)
{
    list members;
    if (fe_job_op_role_of(node) != FE_JOB_OP_SPLIT || node->outputs[0] == NULL || !split(b, node, &members)) return;
    const ir_value *sequence = node->outputs[0];
    for (const ir_use *use = sequence->uses, *successor; use != NULL; use = successor) {
        ir_node *reader = use->node;
        int64_t index;
        successor = use->next; /* read now, because the reader may be removed */
        if (reader == NULL || !index_of(reader, sequence, members.count, &index)) continue;
        ir_value *result = reader->outputs[0];
        result->type = members.member[index]->type;
        if (ir_replace(b, result, members.member[index])) ir_graph_remove_node(b->graph, reader);
    }
}
