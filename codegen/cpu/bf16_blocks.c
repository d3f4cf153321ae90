/* bf16_blocks.c — see dot_products.h. */
#include "codegen/cpu/dot_products.h"

#include "codegen/cpu/cpu_target.h"

#include <assert.h>

enum { LANES = 4 }; /* words of a 128-bit vector */

bool cg_has_blocks(const cg_emitter *e, int rows)
{
    return e->target->machine == &cg_machine_aarch64 && e->target->matmul == CG_MATMUL_BF16 && rows % 2 == 0;
}

static LLVMValueRef shuffle(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, const int lane_of[LANES])
{
    LLVMValueRef mask[LANES];
    for (int i = 0; i < LANES; i++) mask[i] = cg_const_int(e->i32, lane_of[i]);
    return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(mask, LANES), "");
}

/* The low or high vector halves: zip1 or zip2 on 64-bit elements. */
static LLVMValueRef halves(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, bool high)
{
    static const int low_lanes[LANES] = {0, 1, 4, 5}, high_lanes[LANES] = {2, 3, 6, 7};
    return shuffle(e, a, b, high ? high_lanes : low_lanes);
}

/* The exchange is its own inverse. */
void cg_exchange_blocks(cg_emitter *e, const cg_blocks *blocks)
{
    for (int i = 0; i < blocks->rows; i += 2)
        for (int j = 0; j < blocks->vectors; j++) {
            LLVMValueRef *first = &blocks->acc[i * blocks->vectors + j], *second = first + blocks->vectors;
            LLVMValueRef low = halves(e, *first, *second, false), high = halves(e, *first, *second, true);
            *first = low;
            *second = high;
        }
}

static LLVMValueRef multiply(cg_emitter *e, LLVMValueRef rows, LLVMValueRef columns, LLVMValueRef acc)
{
    LLVMTypeRef type = cg_vector(e, e->bf16, 2 * LANES);
    LLVMValueRef args[] = {acc, LLVMBuildBitCast(e->builder, rows, type, ""),
                           LLVMBuildBitCast(e->builder, columns, type, "")};
    return cg_intrinsic(e, "llvm.aarch64.neon.bfmmla", NULL, args, 3);
}

/* Two pairs from each of two rows. */
static LLVMValueRef two_rows(cg_emitter *e, LLVMValueRef first, LLVMValueRef second)
{
    static const int joined[LANES] = {0, 1, 2, 3};
    LLVMTypeRef pairs = cg_vector(e, e->i32, CG_BLOCK_STEPS);
    LLVMValueRef a = cg_load(e, pairs, first, 2);
    return shuffle(e, a, cg_load(e, pairs, second, 2), joined);
}

void cg_add_to_blocks(cg_emitter *e, const cg_blocks *blocks, const LLVMValueRef *rows, LLVMValueRef panel,
                      int64_t panel_step)
{
    static const int low_words[LANES] = {0, 4, 1, 5}, high_words[LANES] = {2, 6, 3, 7};
    LLVMTypeRef vector = cg_vector(e, e->i32, LANES);
    LLVMValueRef left[CG_MAX_TILE_ROWS / 2];
    assert(blocks->rows <= CG_MAX_TILE_ROWS);
    for (int i = 0; i < blocks->rows; i += 2) left[i / 2] = two_rows(e, rows[i], rows[i + 1]);
    for (int j = 0; j < blocks->vectors; j++) {
        LLVMValueRef first = cg_at(e, e->i32, panel, cg_int(e, (int64_t)j * LANES));
        LLVMValueRef second = cg_at(e, e->i32, first, cg_int(e, panel_step));
        LLVMValueRef a = cg_load(e, vector, first, 4 * LANES), b = cg_load(e, vector, second, 4 * LANES);
        LLVMValueRef low = shuffle(e, a, b, low_words), high = shuffle(e, a, b, high_words);
        for (int i = 0; i < blocks->rows; i += 2) {
            LLVMValueRef *acc = &blocks->acc[i * blocks->vectors + j];
            acc[0] = multiply(e, left[i / 2], low, acc[0]);
            acc[blocks->vectors] = multiply(e, left[i / 2], high, acc[blocks->vectors]);
        }
    }
}
