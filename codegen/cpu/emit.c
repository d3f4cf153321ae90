/* emit.c — functions, loops and vector values over the LLVM C API: the building blocks of every kernel emitter.
 *
 * LLVM 19 turns the following IR into the intended instructions (checked in the assembly of both levels):
 *
 *   a < b ? a : b, ordered       one vminps/vmaxps. llvm.minnum adds a compare and a blend for its NaN rule.
 *   llvm.fma                     one vfmadd231; without an FMA feature it would be a call of fmaf, so every level has
 *                                FMA.
 *   insertelement 0 + splat      vbroadcastss, folded into the memory operand of an AVX-512 FMA if it has one use.
 *   phis of a loop that tests    accumulators stay in registers; 6×4 of them on v4 without a spill. The optimiser
 *   at the bottom                rotates a loop that tests at the top, but only if it can prove the first iteration.
 *   extractelement/insert pairs  one vpermps, with variable indices into a constant of as many lanes (gelu.c).
 *   unpack, then 128-bit swaps   a transpose in shuffles of one instruction each.
 *   "no-builtins"                loops that fill or copy stay loops, because the artefact has no memset to call.
 */
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_target.h"

#include <assert.h>
#include <string.h>

void cg_emitter_init(cg_emitter *e, LLVMModuleRef module, const cg_cpu_target *target)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    *e = (cg_emitter){
        .context = context,
        .module = module,
        .builder = LLVMCreateBuilderInContext(context),
        .target = target,
        .f16 = LLVMHalfTypeInContext(context),
        .bf16 = LLVMBFloatTypeInContext(context),
        .f32 = LLVMFloatTypeInContext(context),
        .f64 = LLVMDoubleTypeInContext(context),
        .i1 = LLVMInt1TypeInContext(context),
        .i8 = LLVMInt8TypeInContext(context),
        .i16 = LLVMInt16TypeInContext(context),
        .i32 = LLVMInt32TypeInContext(context),
        .i64 = LLVMInt64TypeInContext(context),
        .ptr = LLVMPointerTypeInContext(context, 0),
    };
}

void cg_emitter_done(cg_emitter *e)
{
    LLVMDisposeBuilder(e->builder);
    e->builder = NULL;
}

static void add_text_attribute(cg_emitter *e, const char *key, const char *value)
{
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(e->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(e->function, LLVMAttributeFunctionIndex, attribute);
}

static void add_attribute(cg_emitter *e, const char *key, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(key, strlen(key));
    LLVMAddAttributeAtIndex(e->function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->context, kind, value));
}

void cg_begin_function(cg_emitter *e, const char *name, LLVMTypeRef *parameters, int count)
{
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), parameters, (unsigned)count, false);
    e->function = LLVMAddFunction(e->module, name, type);
    LLVMSetVisibility(e->function, LLVMHiddenVisibility);
    char section[CG_SECTION_NAME_BYTES];
    cg_code_section(e->target, section);
    LLVMSetSection(e->function, section);
    add_text_attribute(e, "target-cpu", e->target->cpu);
    if (e->target->features[0]) add_text_attribute(e, "target-features", e->target->features);
    add_text_attribute(e, "tune-cpu", e->target->tune);
    add_text_attribute(e, "no-builtins", "");
    add_attribute(e, "nounwind", 0);
    add_attribute(e, "uwtable", 2); /* asynchronous unwind tables, so profilers and debuggers can walk the stack from
                                     * any instruction */
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
}

LLVMValueRef cg_call_field(cg_emitter *e, LLVMValueRef call, LLVMTypeRef type, size_t offset)
{
    return cg_load(e, type, cg_at(e, e->i8, call, cg_int(e, (int64_t)offset)), 8);
}

LLVMValueRef cg_begin_kernel(cg_emitter *e, const char *name, int pointer_count)
{
    LLVMTypeRef parameters[CG_MAX_POINTERS + 1];
    assert(pointer_count <= CG_MAX_POINTERS);
    for (int i = 0; i <= pointer_count; i++) parameters[i] = e->ptr;
    cg_begin_function(e, name, parameters, pointer_count + 1);
    LLVMValueRef call = LLVMGetParam(e->function, (unsigned)pointer_count);
    e->length = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, length));
    e->slice_begin = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, share_begin));
    e->slice_end = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, share_end));
    return e->function;
}

LLVMValueRef cg_begin_entry(cg_emitter *e, const char *name)
{
    cg_begin_function(e, name, &e->ptr, 1);
    e->length = NULL;
    return e->function;
}

void cg_end_function(cg_emitter *e)
{
    LLVMBuildRetVoid(e->builder);
    e->function = NULL;
    e->length = e->slice_begin = e->slice_end = NULL;
}

LLVMValueRef cg_pointer(cg_emitter *e, int index) { return LLVMGetParam(e->function, (unsigned)index); }

static LLVMBasicBlockRef append_block(cg_emitter *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

void cg_loop_begin(cg_emitter *e, cg_loop *loop, LLVMValueRef source, LLVMValueRef target, int64_t step, int count,
                   const LLVMValueRef *init, bool guarded)
{
    assert(count <= CG_MAX_CARRIED);
    loop->limit = target;
    loop->step = step;
    loop->count = count;
    loop->guarded = guarded;
    loop->before = LLVMGetInsertBlock(e->builder);
    loop->body = append_block(e, "loop");
    loop->after = append_block(e, "done");
    if (guarded) {
        LLVMValueRef runs = LLVMBuildICmp(e->builder, LLVMIntSLT, source, target, "");
        LLVMBuildCondBr(e->builder, runs, loop->body, loop->after);
    } else {
        LLVMBuildBr(e->builder, loop->body);
    }
    LLVMPositionBuilderAtEnd(e->builder, loop->body);
    loop->index = LLVMBuildPhi(e->builder, e->i64, "i");
    LLVMAddIncoming(loop->index, &source, &loop->before, 1);
    for (int i = 0; i < count; i++) {
        loop->init[i] = init[i];
        loop->carried[i] = LLVMBuildPhi(e->builder, LLVMTypeOf(init[i]), "");
        LLVMAddIncoming(loop->carried[i], &loop->init[i], &loop->before, 1);
    }
}

void cg_loop_end(cg_emitter *e, cg_loop *loop, const LLVMValueRef *next_value)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder);
    LLVMValueRef index = cg_iadd(e, loop->index, cg_int(e, loop->step));
    LLVMValueRef again = LLVMBuildICmp(e->builder, LLVMIntSLT, index, loop->limit, "");
    LLVMBuildCondBr(e->builder, again, loop->body, loop->after);
    LLVMAddIncoming(loop->index, &index, &latch, 1);
    LLVMPositionBuilderAtEnd(e->builder, loop->after);
    for (int i = 0; i < loop->count; i++) {
        LLVMValueRef value = next_value[i];
        LLVMAddIncoming(loop->carried[i], &value, &latch, 1);
        loop->out[i] = value;
        if (!loop->guarded) continue;
        loop->out[i] = LLVMBuildPhi(e->builder, LLVMTypeOf(value), "");
        LLVMAddIncoming(loop->out[i], &loop->init[i], &loop->before, 1);
        LLVMAddIncoming(loop->out[i], &value, &latch, 1);
    }
    loop->body = NULL; /* ends CG_FOR */
}

void cg_if_begin(cg_emitter *e, cg_if *block, LLVMValueRef cond)
{
    block->then = append_block(e, "then");
    block->after = append_block(e, "after");
    LLVMBuildCondBr(e->builder, cond, block->then, block->after);
    LLVMPositionBuilderAtEnd(e->builder, block->then);
}

void cg_if_end(cg_emitter *e, cg_if *block)
{
    LLVMBuildBr(e->builder, block->after);
    LLVMPositionBuilderAtEnd(e->builder, block->after);
    block->then = NULL; /* ends CG_IF */
}

LLVMValueRef cg_int(cg_emitter *e, int64_t value) { return cg_const_int(e->i64, value); }

LLVMValueRef cg_iadd(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildNSWAdd(e->builder, a, b, ""); }

LLVMValueRef cg_isub(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildNSWSub(e->builder, a, b, ""); }

LLVMValueRef cg_imul(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildNSWMul(e->builder, a, b, ""); }

LLVMValueRef cg_imin(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->builder, LLVMBuildICmp(e->builder, LLVMIntSLT, a, b, ""), a, b, "");
}

LLVMValueRef cg_imax(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->builder, LLVMBuildICmp(e->builder, LLVMIntSGT, a, b, ""), a, b, "");
}

LLVMValueRef cg_dim(cg_emitter *e, ir_dim dim)
{
    LLVMValueRef offset = cg_int(e, dim.offset);
    if (ir_dim_is_number(dim)) return offset;
    LLVMValueRef sum = dim.scale == 0 ? offset : cg_iadd(e, cg_imul(e, e->length, cg_int(e, dim.scale)), offset);
    if (ir_dim_is_affine(dim)) return sum;
    LLVMValueRef dividend = cg_iadd(e, cg_imul(e, e->length, cg_int(e, dim.step)), cg_int(e, dim.start));
    LLVMValueRef floor = LLVMBuildUDiv(e->builder, dividend, cg_int(e, dim.divisor), ""); /* it is never negative */
    return cg_iadd(e, cg_imul(e, floor, cg_int(e, dim.times)), sum);
}

LLVMValueRef cg_round_down(cg_emitter *e, LLVMValueRef a, int64_t power_of_two)
{
    return LLVMBuildAnd(e->builder, a, cg_int(e, -power_of_two), "");
}

LLVMValueRef cg_vector_within(cg_emitter *e, LLVMValueRef position, LLVMValueRef end)
{
    return cg_imin(e, position, cg_isub(e, end, cg_int(e, e->target->lanes)));
}

enum { SLICE_BITS = 32 };

static LLVMValueRef scale_by(cg_emitter *e, LLVMValueRef units, LLVMValueRef slice)
{
    return LLVMBuildLShr(e->builder, cg_imul(e, units, slice), cg_int(e, SLICE_BITS), "");
}

cg_range cg_slice_of(cg_emitter *e, LLVMValueRef units)
{
    if (e->slice_begin == NULL) return (cg_range){cg_int(e, 0), units};
    return (cg_range){scale_by(e, units, e->slice_begin), scale_by(e, units, e->slice_end)};
}

cg_range cg_slice_by_grain(cg_emitter *e, LLVMValueRef count, int64_t grain)
{
    if (e->slice_begin == NULL) return (cg_range){cg_int(e, 0), count};
    LLVMValueRef more = cg_iadd(e, count, cg_int(e, grain - 1));
    cg_range units = cg_slice_of(e, LLVMBuildUDiv(e->builder, more, cg_int(e, grain), ""));
    return (cg_range){cg_imul(e, units.from, cg_int(e, grain)),
                      cg_imin(e, cg_imul(e, units.to, cg_int(e, grain)), count)};
}

LLVMTypeRef cg_vector(cg_emitter *e, LLVMTypeRef element, int lanes)
{
    return lanes == 1 ? element : LLVMVectorType(element, (unsigned)lanes);
}

static int type_lanes(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(type) : 1;
}

int cg_lanes(LLVMValueRef value) { return type_lanes(LLVMTypeOf(value)); }

LLVMTypeRef cg_element(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

LLVMTypeRef cg_with_element(LLVMTypeRef type, LLVMTypeRef element)
{
    int lanes = type_lanes(type);
    return lanes == 1 ? element : LLVMVectorType(element, (unsigned)lanes);
}

enum { MAX_LANES = 64 };

static LLVMValueRef splat_constant(LLVMTypeRef type, LLVMValueRef scalar)
{
    LLVMValueRef lane[MAX_LANES];
    int lanes = type_lanes(type);
    assert(lanes <= MAX_LANES);
    if (lanes == 1) return scalar;
    for (int i = 0; i < lanes; i++) lane[i] = scalar;
    return LLVMConstVector(lane, (unsigned)lanes);
}

LLVMValueRef cg_const_int(LLVMTypeRef type, int64_t value)
{
    LLVMTypeRef element = cg_element(type);
    unsigned width = LLVMGetIntTypeWidth(element);
    uint64_t mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
    return splat_constant(type, LLVMConstInt(element, (uint64_t)value & mask, false));
}

LLVMValueRef cg_const(cg_emitter *e, LLVMTypeRef type, double value)
{
    LLVMTypeRef element = cg_element(type);
    if (LLVMGetTypeKind(element) == LLVMIntegerTypeKind) return cg_const_int(type, (int64_t)value);
    return splat_constant(type, LLVMConstReal(element, value));
}

LLVMValueRef cg_iota(cg_emitter *e, LLVMTypeRef element, int lanes)
{
    LLVMValueRef lane[MAX_LANES];
    assert(lanes <= MAX_LANES);
    for (int i = 0; i < lanes; i++) lane[i] = cg_const(e, element, i);
    return lanes == 1 ? lane[0] : LLVMConstVector(lane, (unsigned)lanes);
}

LLVMValueRef cg_splat(cg_emitter *e, LLVMValueRef scalar, int lanes)
{
    if (lanes == 1) return scalar;
    LLVMTypeRef type = cg_vector(e, LLVMTypeOf(scalar), lanes);
    if (LLVMIsConstant(scalar)) return splat_constant(type, scalar);
    LLVMValueRef none = LLVMGetPoison(type);
    LLVMValueRef first = LLVMBuildInsertElement(e->builder, none, scalar, cg_const_int(e->i32, 0), "");
    return LLVMBuildShuffleVector(e->builder, first, none, LLVMConstNull(cg_vector(e, e->i32, lanes)), "");
}

LLVMValueRef cg_at(cg_emitter *e, LLVMTypeRef element, LLVMValueRef base, LLVMValueRef index)
{
    return LLVMBuildInBoundsGEP2(e->builder, element, base, &index, 1, "");
}

static unsigned natural_alignment(LLVMTypeRef type)
{
    LLVMTypeRef element = cg_element(type);
    switch (LLVMGetTypeKind(element)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind: return 2;
    case LLVMFloatTypeKind: return 4;
    case LLVMIntegerTypeKind: return (LLVMGetIntTypeWidth(element) + 7) / 8;
    default: return 8;
    }
}

LLVMValueRef cg_load(cg_emitter *e, LLVMTypeRef type, LLVMValueRef address, unsigned alignment)
{
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, address, "");
    LLVMSetAlignment(load, alignment ? alignment : natural_alignment(type));
    return load;
}

void cg_store(cg_emitter *e, LLVMValueRef value, LLVMValueRef address, unsigned alignment)
{
    LLVMValueRef store = LLVMBuildStore(e->builder, value, address);
    LLVMSetAlignment(store, alignment ? alignment : natural_alignment(LLVMTypeOf(value)));
}

LLVMValueRef cg_intrinsic_overloaded(cg_emitter *e, const char *name, LLVMTypeRef *overloads, int overload_count,
                                     const LLVMValueRef *args, int count)
{
    enum { MAX_ARGUMENTS = 8 };
    LLVMValueRef copy[MAX_ARGUMENTS];
    assert(count <= MAX_ARGUMENTS);
    for (int i = 0; i < count; i++) copy[i] = args[i];
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id != 0);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(e->module, id, overloads, (size_t)overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, (size_t)overload_count);
    return LLVMBuildCall2(e->builder, type, callee, copy, (unsigned)count, "");
}

LLVMValueRef cg_intrinsic(cg_emitter *e, const char *name, LLVMTypeRef overload, const LLVMValueRef *args, int count)
{
    return cg_intrinsic_overloaded(e, name, &overload, overload != NULL, args, count);
}

LLVMValueRef cg_fma(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    return cg_intrinsic(e, "llvm.fma", LLVMTypeOf(a), (LLVMValueRef[]){a, b, c}, 3);
}

LLVMValueRef cg_fadd(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFAdd(e->builder, a, b, ""); }

LLVMValueRef cg_fsub(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFSub(e->builder, a, b, ""); }

LLVMValueRef cg_fmul(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFMul(e->builder, a, b, ""); }

LLVMValueRef cg_fdiv(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFDiv(e->builder, a, b, ""); }

LLVMValueRef cg_select(cg_emitter *e, LLVMValueRef cond, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(e->builder, cond, yes, no, "");
}

LLVMValueRef cg_fmin(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOLT, a, b, ""), a, b);
}

LLVMValueRef cg_fmax(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOGT, a, b, ""), a, b);
}

LLVMValueRef cg_fabs(cg_emitter *e, LLVMValueRef a) { return cg_intrinsic(e, "llvm.fabs", LLVMTypeOf(a), &a, 1); }

LLVMValueRef cg_sqrt(cg_emitter *e, LLVMValueRef a) { return cg_intrinsic(e, "llvm.sqrt", LLVMTypeOf(a), &a, 1); }

LLVMValueRef cg_rint(cg_emitter *e, LLVMValueRef a) { return cg_intrinsic(e, "llvm.rint", LLVMTypeOf(a), &a, 1); }

static LLVMValueRef shuffle(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, const int *lane_of, int lanes)
{
    LLVMValueRef mask[MAX_LANES];
    for (int i = 0; i < lanes; i++) mask[i] = cg_const_int(e->i32, lane_of[i]);
    return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(mask, (unsigned)lanes), "");
}

LLVMValueRef cg_resize(cg_emitter *e, LLVMValueRef vector, int lanes, double fill)
{
    int lane_of[MAX_LANES], own_index = cg_lanes(vector);
    LLVMValueRef zero = cg_const_int(e->i32, 0);
    if (own_index == lanes) return vector;
    if (lanes == 1) return LLVMBuildExtractElement(e->builder, vector, zero, "");
    LLVMTypeRef element = cg_element(LLVMTypeOf(vector));
    if (own_index == 1)
        return LLVMBuildInsertElement(e->builder, cg_const(e, cg_vector(e, element, lanes), fill), vector, zero, "");
    for (int i = 0; i < lanes; i++) lane_of[i] = i < own_index ? i : own_index;
    return shuffle(e, vector, cg_const(e, LLVMTypeOf(vector), fill), lane_of, lanes);
}

LLVMValueRef cg_reduce(cg_emitter *e, LLVMValueRef vector, cg_combine combine)
{
    int lanes = cg_lanes(vector);
    if (lanes == 1) return vector;
    while (lanes > 2) {
        int low[MAX_LANES], high[MAX_LANES];
        lanes /= 2;
        for (int i = 0; i < lanes; i++) low[i] = i, high[i] = lanes + i;
        LLVMValueRef none = LLVMGetPoison(LLVMTypeOf(vector));
        LLVMValueRef low_half = shuffle(e, vector, none, low, lanes), high_half = shuffle(e, vector, none, high, lanes);
        vector = combine(e, low_half, high_half);
    }
    LLVMValueRef first = LLVMBuildExtractElement(e->builder, vector, cg_const_int(e->i32, 0), "");
    LLVMValueRef second = LLVMBuildExtractElement(e->builder, vector, cg_const_int(e->i32, 1), "");
    return combine(e, first, second);
}

LLVMValueRef cg_reduce_add(cg_emitter *e, LLVMValueRef vector) { return cg_reduce(e, vector, cg_fadd); }

/* Interleaves runs of `run` elements (1 or 2) in the low or high halves of 128-bit blocks: vunpcklps … vunpckhpd. */
static LLVMValueRef unpack(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, int run, bool high, int lanes)
{
    int lane_of[MAX_LANES];
    for (int i = 0; i < lanes; i++) {
        int block = i & ~3, place = i & 3;
        bool from_b = (place / run) & 1;
        int source = block + (high ? 2 : 0) + (run == 1 ? place / 2 : place % 2);
        lane_of[i] = source + (from_b ? lanes : 0);
    }
    return shuffle(e, a, b, lane_of, lanes);
}

/* Rows i and i + width exchange `width` lanes, which transposes the blocks. */
static void swap_blocks(cg_emitter *e, LLVMValueRef *rows, int width, int lanes)
{
    int low[MAX_LANES], high[MAX_LANES];
    for (int i = 0; i < lanes; i++) {
        bool odd = i & width;
        low[i] = odd ? lanes + i - width : i;
        high[i] = odd ? lanes + i : i + width;
    }
    for (int i = 0; i < lanes; i++) {
        if (i & width) continue;
        LLVMValueRef a = rows[i], b = rows[i + width];
        rows[i] = shuffle(e, a, b, low, lanes);
        rows[i + width] = shuffle(e, a, b, high, lanes);
    }
}

void cg_transpose(cg_emitter *e, LLVMValueRef *rows)
{
    int lanes = e->target->lanes;
    for (int i = 0; i < lanes; i += 4) { /* 4×4 inside each 128-bit block */
        LLVMValueRef ab_low = unpack(e, rows[i], rows[i + 1], 1, false, lanes);
        LLVMValueRef ab_high = unpack(e, rows[i], rows[i + 1], 1, true, lanes);
        LLVMValueRef cd_low = unpack(e, rows[i + 2], rows[i + 3], 1, false, lanes);
        LLVMValueRef cd_high = unpack(e, rows[i + 2], rows[i + 3], 1, true, lanes);
        rows[i] = unpack(e, ab_low, cd_low, 2, false, lanes);
        rows[i + 1] = unpack(e, ab_low, cd_low, 2, true, lanes);
        rows[i + 2] = unpack(e, ab_high, cd_high, 2, false, lanes);
        rows[i + 3] = unpack(e, ab_high, cd_high, 2, true, lanes);
    }
    for (int width = 4; width < lanes; width *= 2) swap_blocks(e, rows, width, lanes);
}
