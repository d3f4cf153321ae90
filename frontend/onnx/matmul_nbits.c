/* matmul_nbits.c — the weights of MatMulNBits (docs/ContribOperators.md of onnxruntime) as numbers.
 *
 * Each of the N columns has ceil(K / block_size) blocks of elements of 2, 4 or 8 bits, the lowest bits first. The
 * weight is (element - zero point) · scale. Both belong to the block, or to the block that g_idx gives for the row.
 * Zero points are packed like the elements, with each column padded to a byte, or they are numbers.
 */
#include "frontend/onnx/rewrites.h"

#include <string.h>

enum { PACKED = 1, SCALES, ZEROS, GROUPS }; /* inputs */

typedef struct packing {
    const ir_tensor *elements, *scales, *zeros, *groups; /* zeros and groups may be NULL */
    int64_t rows, columns, bits, block, blocks;          /* rows: K, columns: N */
} packing;

static const ir_tensor *content(const ir_node *node, int i)
{
    const ir_value *value = ir_node_input(node, i);
    return value != NULL && value->constant != NULL && value->constant->data != NULL ? value->constant : NULL;
}

/* Has the tensor this many bytes, or elements of another type? */
static bool has(const ir_tensor *tensor, int64_t columns, int64_t part)
{
    const int64_t dims[] = {columns, part};
    return tensor->count == ir_count_elements(2, dims);
}

static int64_t bytes_for(int64_t elements, int64_t bits) { return (elements * bits + 7) / 8; }

/* NULL: the node can be unpacked. */
static const char *fault_of(const fe_upgrader *u, const ir_node *node, packing *p)
{
    enum { MOST = 1 << 30 }; /* of K and N: products stay far from overflow */
    p->rows = ir_node_int(node, "K", 0);
    p->columns = ir_node_int(node, "N", 0);
    p->bits = ir_node_int(node, "bits", 4);
    p->block = ir_node_int(node, "block_size", 0);
    p->elements = content(node, PACKED);
    p->scales = content(node, SCALES);
    p->zeros = content(node, ZEROS);
    p->groups = content(node, GROUPS);
    if (p->rows < 1 || p->rows > MOST || p->columns < 1 || p->columns > MOST)
        return "K and N must be between 1 and 2^30";
    if (p->rows * p->columns > FE_MAX_UNPACKED_WEIGHTS - u->unpacked_weights)
        return "unpacked, the weights of the model take more than 2 GiB even in bf16, which CPU code cannot reach; "
               "split the model";
    if (p->bits != 2 && p->bits != 4 && p->bits != 8) return "the weights must have 2, 4 or 8 bits";
    if (p->block < 16 || p->block > MOST || (p->block & (p->block - 1)) != 0)
        return "block_size must be a power of two, at least 16";
    bool is_constant = p->elements != NULL && p->scales != NULL &&
                       (p->zeros != NULL || ir_node_input(node, ZEROS) == NULL) &&
                       (p->groups != NULL || ir_node_input(node, GROUPS) == NULL);
    if (!is_constant) return "weights, scales and zero points must be constants; store them as initializers";
    p->blocks = (p->rows + p->block - 1) / p->block;
    if (p->elements->dtype != MDOT_DTYPE_U8 || !has(p->elements, p->columns, p->blocks * bytes_for(p->block, p->bits)))
        return "the weights must be u8[N, ceil(K / block_size), block_size * bits / 8]";
    if (!ir_dtype_is_float(p->scales->dtype) || !has(p->scales, p->columns, p->blocks))
        return "the scales must be floats, one for each block";
    if (p->zeros != NULL) {
        bool is_packed = p->zeros->dtype == MDOT_DTYPE_U8;
        int64_t part = is_packed ? bytes_for(p->blocks, p->bits) : p->blocks;
        if ((!is_packed && !ir_dtype_is_float(p->zeros->dtype)) || !has(p->zeros, p->columns, part))
            return "the zero points must be packed like the weights, or floats, one for each block";
    }
    if (p->groups == NULL) return NULL;
    if (p->groups->dtype != MDOT_DTYPE_I32 || p->groups->count < p->rows)
        return "g_idx must be i32, with one element for each of K rows";
    for (int64_t k = 0; k < p->rows; k++) {
        int64_t group = ir_tensor_integer(p->groups, k);
        if (group < 0 || group >= p->blocks) return "an element of g_idx is outside the blocks";
    }
    return NULL;
}

static int64_t unpacked(const unsigned char *bytes, int64_t offset, int64_t bits)
{
    int64_t bit = offset * bits;
    return bytes[bit / 8] >> bit % 8 & ((1 << bits) - 1);
}

static double zero_of(const packing *p, int64_t column, int64_t block)
{
    if (p->zeros == NULL) return (double)(1 << (p->bits - 1));
    if (p->zeros->dtype != MDOT_DTYPE_U8) return ir_tensor_real(p->zeros, column * p->blocks + block);
    const unsigned char *own = (const unsigned char *)p->zeros->data + column * bytes_for(p->blocks, p->bits);
    return (double)unpacked(own, block, p->bits);
}

static void store(unsigned char *at, mdot_dtype dtype, double value)
{
    switch (dtype) {
    case MDOT_DTYPE_F32: memcpy(at, &(float){(float)value}, sizeof(float)); break;
    case MDOT_DTYPE_F64: memcpy(at, &value, sizeof value); break;
    case MDOT_DTYPE_F16: memcpy(at, &(uint16_t){ir_f64_to_f16(value)}, sizeof(uint16_t)); break;
    default: memcpy(at, &(uint16_t){ir_f64_to_bf16(value)}, sizeof(uint16_t)); break;
    }
}

/* Unpacks some columns, from `first` on, row by row, because they are adjacent in the result. */
static void unpack_columns(const packing *p, int64_t first, int64_t end, unsigned char *out)
{
    mdot_dtype dtype = p->scales->dtype;
    size_t size = mdot_dtype_size_bytes(dtype), part = (size_t)(p->blocks * bytes_for(p->block, p->bits));
    for (int64_t k = 0; k < p->rows; k++) {
        int64_t block = p->groups != NULL ? ir_tensor_integer(p->groups, k) : k / p->block;
        for (int64_t n = first; n < end; n++) {
            const unsigned char *column = (const unsigned char *)p->elements->data + (size_t)n * part;
            double scale = ir_tensor_real(p->scales, n * p->blocks + block);
            double value = ((double)unpacked(column, k, p->bits) - zero_of(p, n, block)) * scale;
            store(out + (size_t)(k * p->columns + n) * size, dtype, value);
        }
    }
}

const ir_tensor *fe_unpack_n_bits(fe_upgrader *u, const ir_node *node, const char **out_fault)
{
    enum { TILE = 64 };
    packing p;
    *out_fault = fault_of(u, node, &p);
    if (*out_fault != NULL) return NULL;
    u->unpacked_weights += p.rows * p.columns;
    mdot_dtype dtype = p.scales->dtype;
    int64_t count = p.rows * p.columns;
    ir_tensor *tensor = IR_NEW(u->graph->arena, ir_tensor);
    unsigned char *data = ir_arena_alloc(u->graph->arena, (size_t)count, mdot_dtype_size_bytes(dtype));
    if (tensor == NULL || data == NULL) return NULL;
    for (int64_t n = 0; n < p.columns; n += TILE)
        unpack_columns(&p, n, n + TILE < p.columns ? n + TILE : p.columns, data);
    *tensor = (ir_tensor){.dtype = dtype, .rank = 2, .dims = {p.rows, p.columns}, .count = count, .data = data};
    return tensor;
}
