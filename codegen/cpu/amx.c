/* amx.c — see dot_products.h.
 *
 * The code uses LLVM's intrinsics with constant tile numbers, because the intrinsics that allocate tiles configure
 * them anew in every function. Intel's SDM, volume 2, "TDPBF16PS", specifies the instruction. For a row of the left
 * factor and a column of the right, it sums even elements and odd elements separately, by fused multiply-adds, and
 * then adds both to the sum. Plain vectors do the same. They differ only in denormals, which the instruction treats
 * as zero.
 */
#include "codegen/cpu/dot_products.h"

#include "codegen/cpu/emit.h"

/* The only palette, and for each tile bytes per row and rows (SDM volume 1, table "Memory Area Layout for
 * LDTILECFG"). */
static LLVMValueRef configuration(cg_emitter *e)
{
    static const char name[] = "amx.configuration";
    LLVMValueRef known = LLVMGetNamedGlobal(e->module, name);
    if (known != NULL) return known;
    unsigned char bytes[64] = {1};
    for (int t = 0; t < CG_AMX_TILES; t++) bytes[16 + 2 * t] = CG_AMX_ROW_BYTES, bytes[48 + t] = CG_AMX_ROWS;
    LLVMValueRef content = LLVMConstStringInContext(e->context, (const char *)bytes, sizeof bytes, true);
    LLVMValueRef global = LLVMAddGlobal(e->module, LLVMTypeOf(content), name);
    LLVMSetInitializer(global, content);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetAlignment(global, sizeof bytes);
    return global;
}

static bool is_plain(const cg_emitter *e) { return e->target->use_generic_vectors; }

void cg_amx_configure(cg_emitter *e)
{
    if (!is_plain(e)) cg_intrinsic(e, "llvm.x86.ldtilecfg", NULL, (LLVMValueRef[]){configuration(e)}, 1);
}

void cg_amx_release(cg_emitter *e)
{
    if (!is_plain(e)) cg_intrinsic(e, "llvm.x86.tilerelease", NULL, NULL, 0);
}

static LLVMValueRef number(cg_emitter *e, int tile) { return cg_const_int(e->i8, tile); }

void cg_amx_begin_kernel(cg_emitter *e)
{
    if (!is_plain(e)) return;
    LLVMTypeRef row = cg_vector(e, e->i32, CG_AMX_BF16);
    e->amx_tiles = LLVMBuildArrayAlloca(e->builder, row, cg_const_int(e->i32, CG_AMX_TILES * CG_AMX_ROWS), "tiles");
    LLVMSetAlignment(e->amx_tiles, CG_AMX_ROW_BYTES);
}

static LLVMValueRef tile_row(cg_emitter *e, int tile, LLVMValueRef row)
{
    LLVMValueRef address = cg_iadd(e, cg_int(e, (int64_t)tile * CG_AMX_ROWS), row);
    return cg_at(e, cg_vector(e, e->i32, CG_AMX_BF16), e->amx_tiles, address);
}

/* Copies a tile's rows from (or to) memory; if `address` is NULL, fills the tile with zeros. */
static void move_rows(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride, bool to_tile)
{
    LLVMTypeRef type = cg_vector(e, e->i32, CG_AMX_BF16);
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), cg_int(e, CG_AMX_ROWS), 1) {
        LLVMValueRef inside = tile_row(e, tile, row.index), outside = address;
        if (address != NULL) outside = cg_at(e, e->i8, address, cg_imul(e, row.index, stride));
        LLVMValueRef value = cg_const_int(type, 0);
        if (address != NULL) value = cg_load(e, type, to_tile ? outside : inside, to_tile ? 1 : CG_AMX_ROW_BYTES);
        cg_store(e, value, to_tile ? inside : outside, to_tile ? CG_AMX_ROW_BYTES : 1);
    }
}

static void add_product_plainly(cg_emitter *e, int sums, int left, int right)
{
    LLVMTypeRef words = cg_vector(e, e->i32, CG_AMX_BF16), floats = cg_vector(e, e->f32, CG_AMX_BF16);
    LLVMValueRef zeros[] = {cg_const(e, floats, 0), cg_const(e, floats, 0)};
    cg_loop pair;
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), cg_int(e, CG_AMX_ROWS), 1) {
        LLVMValueRef left_row = tile_row(e, left, row.index), sum_row = tile_row(e, sums, row.index);
        cg_loop_begin(e, &pair, cg_int(e, 0), cg_int(e, CG_AMX_BF16), 1, 2, zeros, false);
        LLVMValueRef a = cg_splat(e, cg_load(e, e->i32, cg_at(e, e->i32, left_row, pair.index), 0), CG_AMX_BF16);
        LLVMValueRef b = cg_load(e, words, tile_row(e, right, pair.index), CG_AMX_ROW_BYTES);
        LLVMValueRef low_a = cg_low_of_bf16(e, a), low_b = cg_low_of_bf16(e, b);
        LLVMValueRef even = cg_fma(e, low_a, low_b, pair.carried[0]);
        LLVMValueRef high_a = cg_high_of_bf16(e, a), high_b = cg_high_of_bf16(e, b);
        LLVMValueRef odd = cg_fma(e, high_a, high_b, pair.carried[1]);
        cg_loop_end(e, &pair, (LLVMValueRef[]){even, odd});
        LLVMValueRef sum = cg_load(e, floats, sum_row, CG_AMX_ROW_BYTES);
        cg_store(e, cg_fadd(e, sum, cg_fadd(e, pair.out[0], pair.out[1])), sum_row, CG_AMX_ROW_BYTES);
    }
}

void cg_amx_zero(cg_emitter *e, int tile)
{
    if (is_plain(e))
        move_rows(e, tile, NULL, NULL, true);
    else
        cg_intrinsic(e, "llvm.x86.tilezero", NULL, (LLVMValueRef[]){number(e, tile)}, 1);
}

void cg_amx_load(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride)
{
    if (is_plain(e))
        move_rows(e, tile, address, stride, true);
    else
        cg_intrinsic(e, "llvm.x86.tileloadd64", NULL, (LLVMValueRef[]){number(e, tile), address, stride}, 3);
}

void cg_amx_store(cg_emitter *e, int tile, LLVMValueRef address, LLVMValueRef stride)
{
    if (is_plain(e))
        move_rows(e, tile, address, stride, false);
    else
        cg_intrinsic(e, "llvm.x86.tilestored64", NULL, (LLVMValueRef[]){number(e, tile), address, stride}, 3);
}

void cg_amx_dot(cg_emitter *e, int sums, int left, int right)
{
    if (is_plain(e)) {
        add_product_plainly(e, sums, left, right);
    } else {
        LLVMValueRef tiles[] = {number(e, sums), number(e, left), number(e, right)};
        cg_intrinsic(e, "llvm.x86.tdpbf16ps", NULL, tiles, 3);
    }
}
