/* expand_rotary.c — decomposes RotaryEmbedding (ONNX opset 23) into slices and pointwise operators. Pairs of channels
 * are rotated by the angle of their position (Su et al., "RoFormer", 2021). */
#include "ir/passes/pass_rules.h"

typedef struct rotation {
    ir_value *cosine, *sine; /* broadcastable to [batch, …, half] */
} rotation;

/* The part of a cache for the input's positions: [B, S, half] with an additional dimension for the heads at `axis`. */
static ir_value *angles(ir_builder *b, ir_node *node, ir_value *cache, int64_t half, int axis)
{
    ir_value *positions = ir_node_input(node, 3);
    ir_value *table = positions != NULL ? ir_build_op2(b, IR_OP_Gather, cache, positions) : cache;
    if (table == NULL) return NULL;
    int last_index = table->type.rank - 1;
    if (!ir_dim_is(table->type.dim[last_index], half)) table = ir_build_slice(b, table, last_index, 0, half);
    if (table == NULL) return NULL;
    ir_dim dims[4];
    for (int i = 0, source = 0; i < 4; i++) dims[i] = i == axis ? ir_dim_number(1) : table->type.dim[source++];
    return ir_build_reshape(b, table, dims, 4);
}

/* x[..., 0::2] and x[..., 1::2], as the two columns of [..., half, 2]. */
static ir_value *every_second(ir_builder *b, ir_value *x, int64_t half, int64_t first)
{
    const ir_dim *dim = x->type.dim;
    ir_dim pairs[] = {dim[0], dim[1], dim[2], ir_dim_number(half), ir_dim_number(2)};
    ir_dim column[] = {dim[0], dim[1], dim[2], ir_dim_number(half)};
    return ir_build_reshape(b, ir_build_slice(b, ir_build_reshape(b, x, pairs, 5), 4, first, first + 1), column, 4);
}

static ir_value *interleave(ir_builder *b, ir_value *even, ir_value *odd, int64_t half)
{
    if (even == NULL || odd == NULL) return NULL;
    const ir_dim *dim = even->type.dim;
    ir_dim column[] = {dim[0], dim[1], dim[2], ir_dim_number(half), ir_dim_number(1)};
    ir_dim row[] = {dim[0], dim[1], dim[2], ir_dim_number(2 * half)};
    ir_value *columns[] = {ir_build_reshape(b, even, column, 5), ir_build_reshape(b, odd, column, 5)};
    return ir_build_reshape(b, ir_build_concat(b, 4, columns, 2), row, 4);
}

/* (a + ib) · (cos + i sin), channel by channel. */
static ir_value *turned(ir_builder *b, ir_value *x, rotation r, int64_t half, bool interleaved)
{
    ir_value *real = interleaved ? every_second(b, x, half, 0) : ir_build_slice(b, x, 3, 0, half);
    ir_value *imaginary = interleaved ? every_second(b, x, half, 1) : ir_build_slice(b, x, 3, half, 2 * half);
    ir_value *kept = ir_build_mul(b, r.cosine, real), *crossed = ir_build_mul(b, r.sine, imaginary);
    ir_value *turned_real = ir_build_sub(b, kept, crossed);
    crossed = ir_build_mul(b, r.sine, real);
    kept = ir_build_mul(b, r.cosine, imaginary);
    ir_value *turned_imaginary = ir_build_add(b, crossed, kept);
    if (interleaved) return interleave(b, turned_real, turned_imaginary, half);
    return ir_build_concat(b, 3, (ir_value *[]){turned_real, turned_imaginary}, 2);
}

void ir_expand_rotary_embedding(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    bool rows = x->type.rank == 3; /* [B, S, heads · D]; else [B, heads, S, D] */
    int64_t heads = ir_node_int(node, "num_heads", 0);
    if (rows) {
        if (heads < 1 || !ir_dim_is_number(x->type.dim[2])) return;
        const ir_dim *dim = x->type.dim;
        ir_dim split[] = {dim[0], dim[1], ir_dim_number(heads), ir_dim_number(dim[2].offset / heads)};
        x = ir_build_reshape(b, x, split, 4);
    }
    if (x == NULL || !ir_dim_is_number(x->type.dim[3])) return;
    int64_t channels = x->type.dim[3].offset, rotated = ir_node_int(node, "rotary_embedding_dim", 0);
    if (rotated == 0) rotated = channels;
    int head_axis = rows ? 2 : 1;
    rotation r = {angles(b, node, node->inputs[1], rotated / 2, head_axis),
                  angles(b, node, node->inputs[2], rotated / 2, head_axis)};
    ir_value *part = rotated == channels ? x : ir_build_slice(b, x, 3, 0, rotated);
    if (part == NULL) return;
    ir_value *whole = turned(b, part, r, rotated / 2, ir_node_int(node, "interleaved", 0));
    if (rotated != channels)
        whole = ir_build_concat(b, 3, (ir_value *[]){whole, ir_build_slice(b, x, 3, rotated, channels)}, 2);
    ir_replace(b, result, ir_build_reshape(b, whole, result->type.dim, result->type.rank));
}
