/* fold.c — infers types and folds constants: values known at compile time are replaced by constants.
 *
 * There are three sources: content that the shape rules found (ir_value.known), or empty content; operators that read
 * only shapes; and operators whose inputs are all constants. The reference evaluator computes these in double
 * precision and rounds the results to their nominal type. An initializer whose data was not read (a job's weights)
 * folds nothing.
 */
#include "ir/passes/graph_builder.h"

#include "ir/ops.h"
#include "ir/ops/families.h"
#include "ir/passes.h"

/* Upper limit for folded constants, because larger ones would only move work from the CPU to the file. */
enum { MAX_BYTES = 64 << 20 };
/* Upper limit for constants that merely repeat a small operand (Expand, Tile, ConstantOfShape), because reading them
 * costs as much as computing them. */
enum { MAX_GROWN_BYTES = 4 << 20, GROWTH = 4 };

static int64_t size_bytes(const ir_value *value, int64_t element_bytes)
{
    int64_t count = ir_type_count_at(&value->type, 0); /* types without the symbol are equal at every length */
    int64_t bytes;
    return count < 0 || __builtin_mul_overflow(count, element_bytes, &bytes) ? INT64_MAX : bytes;
}

static bool is_concrete(const ir_value *value)
{
    if (value->type.rank < 0) return false;
    for (int i = 0; i < value->type.rank; i++)
        if (!ir_dim_is_number(value->type.dim[i]) || value->type.dim[i].offset < 0) return false;
    return true;
}

static bool is_worthwhile(const ir_node *node)
{
    int64_t input = 0, out = 0;
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL) continue;
        if (__builtin_add_overflow(input, size_bytes(value, (int64_t)mdot_dtype_size_bytes(value->type.dtype)), &input))
            return false;
    }
    for (int i = 0; i < node->output_count; i++) {
        const ir_value *value = node->outputs[i];
        if (value == NULL) continue;
        if (!is_concrete(value) || value->type.dtype == MDOT_DTYPE_STRING) return false;
        int64_t bytes = size_bytes(value, (int64_t)mdot_dtype_size_bytes(value->type.dtype));
        if (bytes > MAX_BYTES) return false;
        out += bytes;
    }
    bool repeats = node->op->lowering == IR_LOWER_MOVE && out / GROWTH > input;
    return !repeats || out <= MAX_GROWN_BYTES;
}

/* The constant that equals `value` if its known content is all numbers, or if it is empty. Otherwise NULL. */
static ir_value *known_constant(ir_builder *b, const ir_value *value)
{
    int64_t content[IR_MAX_KNOWN], dims[MDOT_MAX_RANK];
    int count;
    if (value == NULL || !is_concrete(value) || value->type.dtype == MDOT_DTYPE_STRING) return NULL;
    int64_t elements = ir_type_count_at(&value->type, 0);
    if (elements == 0)
        count = 0;
    else if (!ir_value_ints(value, content, &count) || count != elements)
        return NULL;
    for (int i = 0; i < value->type.rank; i++) dims[i] = value->type.dim[i].offset;
    ir_wide *wide = ir_wide_create(b->graph->arena, value->type.dtype, value->type.rank, dims);
    for (int i = 0; wide != NULL && i < count; i++) {
        if (wide->f != NULL)
            wide->f[i] = (double)content[i];
        else
            wide->i[i] = content[i];
    }
    ir_tensor *tensor = wide != NULL ? ir_tensor_from_wide(b->graph->arena, wide) : NULL;
    return tensor != NULL ? ir_build_constant(b, tensor->dtype, dims, tensor->rank, tensor->data) : NULL;
}

/* The information about input i that is required to compute an operator. */
typedef enum need { NEEDS_CONTENT, NEEDS_SHAPE, NEEDS_DTYPE } need;

static need need_of(const ir_node *node, int i)
{
    if (node->op == &ir_ops[IR_OP_CastLike] && i == 1) return NEEDS_DTYPE;
    return node->op->traits & IR_SHAPE_ONLY ? NEEDS_SHAPE : NEEDS_CONTENT;
}

static bool is_computable(const ir_node *node)
{
    if (!(node->op->traits & IR_STATELESS) || node->op->eval == NULL || !is_worthwhile(node)) return false;
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL) continue;
        if (value->type.dtype == MDOT_DTYPE_STRING) return false;
        if (value->constant != NULL && value->constant->data != NULL) continue;
        need n = need_of(node, i);
        if (n == NEEDS_CONTENT || (n == NEEDS_SHAPE && !is_concrete(value))) return false;
    }
    return true;
}

static ir_wide *operand(ir_arena *arena, const ir_value *value)
{
    if (value->constant != NULL && value->constant->data != NULL) return ir_wide_from_tensor(arena, value->constant);
    ir_wide *shape = IR_NEW(arena, ir_wide); /* the operator reads only the shape */
    if (shape == NULL) return NULL;
    shape->dtype = value->type.dtype;
    shape->rank = value->type.rank;
    for (int i = 0; i < shape->rank; i++) shape->dims[i] = value->type.dim[i].offset;
    shape->count = ir_count_elements(shape->rank, shape->dims);
    return shape;
}

/* The narrow type whose rounding remains in a constant after a cast to a wider type. */
static mdot_dtype rounded_by(const ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_Cast]) return MDOT_DTYPE_NONE;
    mdot_dtype source_dtype = node->inputs[0]->type.dtype;
    return source_dtype == MDOT_DTYPE_F16 || source_dtype == MDOT_DTYPE_BF16 ? source_dtype : MDOT_DTYPE_NONE;
}

/* Evaluates the node in `arena` and turns the outputs into constants. */
static void evaluate(ir_builder *b, ir_node *node, ir_arena *arena)
{
    const ir_wide **input = IR_NEW_ARRAY(arena, const ir_wide *, node->input_count);
    ir_wide **out = IR_NEW_ARRAY(arena, ir_wide *, node->output_count);
    bool ready = input != NULL && out != NULL;
    for (int i = 0; ready && i < node->input_count; i++) {
        input[i] = node->inputs[i] != NULL ? operand(arena, node->inputs[i]) : NULL;
        ready = input[i] != NULL || node->inputs[i] == NULL;
    }
    if (!ready) {
        b->status = BS_OUT_OF_MEMORY(b->err, "folding %s of %s", node->name, b->graph->name);
        return;
    }
    b->status = ir_eval_node(arena, node, input, out, b->err);
    for (int i = 0; b->status == MDOT_OK && i < node->output_count; i++) {
        if (node->outputs[i] == NULL || out[i] == NULL) continue;
        ir_tensor *tensor = ir_tensor_from_wide(b->graph->arena, out[i]);
        if (tensor == NULL) continue;
        ir_value *constant = ir_build_constant(b, tensor->dtype, tensor->dims, tensor->rank, tensor->data);
        if (constant != NULL) constant->rounded = rounded_by(node);
        ir_replace(b, node->outputs[i], constant);
    }
}

void ir_fold_node(ir_builder *b, ir_node *node)
{
    if (node->op == &ir_ops[IR_OP_Identity]) { /* saves a copy */
        if (node->inputs[0]->constant != NULL) ir_replace(b, node->outputs[0], node->inputs[0]);
        return;
    }
    bool all_known = true;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL || !node->outputs[i]->use_count) continue;
        all_known = ir_replace(b, node->outputs[i], known_constant(b, node->outputs[i])) && all_known;
    }
    if (all_known || !is_computable(node)) return;
    ir_arena *scratch = ir_arena_create(0);
    if (scratch != NULL)
        evaluate(b, node, scratch);
    else
        b->status = BS_OUT_OF_MEMORY(b->err, "%s", b->graph->name);
    ir_arena_destroy(scratch);
}

static void infer_and_fold(ir_builder *b, ir_node *node)
{
    b->status = ir_infer_node(b->graph, node, b->err);
    if (b->status == MDOT_OK) ir_fold_node(b, node);
}

/* Infers and folds in one walk, because a shape may depend on numbers that only folding computes. */
mdot_status ir_pass_infer(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    bool folded;
    mdot_status status = ir_rewrite(graph, infer_and_fold, &folded, err);
    if (status == MDOT_OK) *out_changed = true;
    return status;
}
