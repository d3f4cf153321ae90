/* cpu_expr.c — pl_expr → scalar or vector IR, with its loads and stores.
 *
 * With lanes > 1, one loop of the kernel represents that many consecutive values. A value is a vector only if it
 * depends on that loop. All other values stay scalar and are splatted when they meet a vector. So index computations
 * and broadcast operands cost as much as in scalar code. Element access depends on how an index changes with the
 * loop: by 0, one scalar load; by one element, one vector load, by two, two of them; otherwise one load per lane.
 *
 * Every shared sub-tree is emitted once per call, regardless of the number of paths to it. Number conversions and
 * the semantics of each operator are in arith.c.
 */
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"
#include "codegen/cpu/signatures.h"
#include "plan/expr.h"

#include <assert.h>

typedef struct evaluation {
    cg_emitter *e;
    const cg_scope *scope;
    const pl_plan *plan;
    cg_pointer_map vector; /* values with the vector loop in all lanes */
    cg_pointer_map scalar; /* values for lane 0 only: addresses */
} evaluation;

static void evaluation_init(evaluation *v, cg_emitter *e, const cg_scope *scope, const pl_plan *plan)
{
    v->e = e;
    v->scope = scope;
    v->plan = plan;
    cg_pointer_map_init(&v->vector, plan->arena);
    cg_pointer_map_init(&v->scalar, plan->arena);
    for (int i = 0; i < scope->known_count; i++)
        cg_pointer_map_put(&v->vector, scope->known[i].expr, scope->known[i].value);
}

static LLVMValueRef evaluate(evaluation *v, const pl_expr *expr, bool lane0);

static LLVMValueRef lane_number(cg_emitter *e, int lane) { return cg_const_int(e->i32, lane); }

static LLVMValueRef reverse(cg_emitter *e, LLVMValueRef vector)
{
    int lanes = cg_lanes(vector);
    LLVMValueRef mask[64];
    assert(lanes <= 64);
    for (int i = 0; i < lanes; i++) mask[i] = lane_number(e, lanes - 1 - i);
    return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                  LLVMConstVector(mask, (unsigned)lanes), "");
}

/* A vector accumulator varies with the vector loop, although the expression contains no INDEX of it. */
static bool reads_vector_accumulator(const evaluation *v, const pl_expr *expr)
{
    if (expr->op == PL_ACC) return cg_lanes(v->scope->acc[expr->i]) > 1;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (reads_vector_accumulator(v, expr->arg[i])) return true;
    return false;
}

/* Lane addresses for one access. */
typedef struct access {
    bool strided; /* otherwise `index` is a vector, or lanes is 1 */
    int64_t stride;
    LLVMTypeRef type; /* type of an element */
    LLVMValueRef base, index;
} access;

static access access_at(evaluation *v, int buffer, const pl_expr *index, bool lane0)
{
    const cg_scope *scope = v->scope;
    access a = {.type = cg_stored_type(v->e, v->plan, buffer), .base = scope->buffers[buffer]};
    assert(a.base);
    bool scalar = lane0 || scope->lanes == 1;
    a.strided = scalar || (pl_expr_stride(index, scope->vector_loop, &a.stride) && !reads_vector_accumulator(v, index));
    if (scalar) a.stride = 0;
    a.index = evaluate(v, index, a.strided);
    if (!a.strided && cg_lanes(a.index) == 1) a.strided = true, a.stride = 0;
    return a;
}

static LLVMValueRef lane_address(cg_emitter *e, const access *a, int lane)
{
    LLVMValueRef index = a->strided ? LLVMBuildAdd(e->builder, a->index, cg_int(e, lane * a->stride), "")
                                    : LLVMBuildExtractElement(e->builder, a->index, lane_number(e, lane), "");
    return cg_at(e, a->type, a->base, index);
}

/* Every second element, from two vectors that end with the last one. */
static LLVMValueRef load_alternate(cg_emitter *e, const access *a, int lanes)
{
    LLVMValueRef mask[64], first = lane_address(e, a, 0);
    LLVMTypeRef vector = cg_vector(e, a->type, lanes);
    assert(lanes <= 64);
    for (int i = 0; i < lanes; i++) mask[i] = lane_number(e, 2 * i < lanes ? 2 * i : 2 * i + 1);
    LLVMValueRef low = cg_load(e, vector, first, 0);
    LLVMValueRef high = cg_load(e, vector, cg_at(e, a->type, first, cg_int(e, lanes - 1)), 0);
    return LLVMBuildShuffleVector(e->builder, low, high, LLVMConstVector(mask, (unsigned)lanes), "");
}

static LLVMValueRef load(evaluation *v, const pl_expr *expr, bool lane0)
{
    cg_emitter *e = v->e;
    access a = access_at(v, expr->i, expr->arg[0], lane0);
    int lanes = v->scope->lanes;
    LLVMTypeRef vector = cg_vector(e, a.type, lanes);
    LLVMValueRef value;
    if (a.strided && a.stride == 0) {
        value = cg_load(e, a.type, lane_address(e, &a, 0), 0);
    } else if (a.strided && a.stride == 1) {
        value = cg_load(e, vector, lane_address(e, &a, 0), 0);
    } else if (a.strided && a.stride == -1) {
        value = reverse(e, cg_load(e, vector, lane_address(e, &a, lanes - 1), 0));
    } else if (a.strided && a.stride == 2) {
        value = load_alternate(e, &a, lanes);
    } else {
        value = LLVMGetPoison(vector);
        for (int lane = 0; lane < lanes; lane++) {
            LLVMValueRef element = cg_load(e, a.type, lane_address(e, &a, lane), 0);
            value = LLVMBuildInsertElement(e->builder, value, element, lane_number(e, lane), "");
        }
    }
    return cg_from_storage(e, value, cg_stored_dtype(e->target, &v->plan->buffers[expr->i]));
}

static void store(cg_emitter *e, const access *a, LLVMValueRef value, int lanes)
{
    if (lanes == 1) {
        cg_store(e, value, lane_address(e, a, 0), 0);
    } else if (a->strided && a->stride == 1) {
        cg_store(e, value, lane_address(e, a, 0), 0);
    } else if (a->strided && a->stride == -1) {
        LLVMValueRef reversed = reverse(e, value);
        cg_store(e, reversed, lane_address(e, a, lanes - 1), 0);
    } else {
        for (int lane = 0; lane < lanes; lane++) {
            LLVMValueRef element = LLVMBuildExtractElement(e->builder, value, lane_number(e, lane), "");
            cg_store(e, element, lane_address(e, a, lane), 0);
        }
    }
}

static LLVMValueRef loop_index(evaluation *v, int loop, bool lane0)
{
    LLVMValueRef index = v->scope->loops[loop];
    assert(index);
    if (lane0 || v->scope->lanes == 1 || loop != v->scope->vector_loop) return index;
    LLVMValueRef lanes = cg_iota(v->e, v->e->i64, v->scope->lanes);
    return LLVMBuildAdd(v->e->builder, cg_splat(v->e, index, v->scope->lanes), lanes, "");
}

static LLVMValueRef literal(cg_emitter *e, const pl_expr *expr)
{
    LLVMTypeRef type = cg_value_type(e, expr->dtype);
    return ir_dtype_is_float(expr->dtype) ? cg_const(e, type, expr->f) : cg_const_int(type, expr->n);
}

static LLVMValueRef evaluate_node(evaluation *v, const pl_expr *expr, bool lane0)
{
    switch (expr->op) {
    case PL_CONST: return literal(v->e, expr);
    case PL_INDEX: return loop_index(v, expr->i, lane0);
    case PL_STEP: return v->e->step;
    case PL_LENGTH: return v->e->length;
    case PL_LOAD: return load(v, expr, lane0);
    case PL_ACC: return v->scope->acc[expr->i];
    default: break;
    }
    LLVMValueRef arg[3] = {NULL, NULL, NULL};
    int count = pl_expr_operand_count(expr->op), lanes = 1;
    for (int i = 0; i < count; i++) {
        arg[i] = evaluate(v, expr->arg[i], lane0);
        if (cg_lanes(arg[i]) > lanes) lanes = cg_lanes(arg[i]);
    }
    for (int i = 0; i < count; i++)
        if (cg_lanes(arg[i]) < lanes) arg[i] = cg_splat(v->e, arg[i], lanes);
    if (expr->op == PL_GELU && expr == v->scope->rounded) return cg_gelu_to_bf16(v->e, arg[0]);
    return cg_operator(v->e, expr, arg);
}

static LLVMValueRef evaluate(evaluation *v, const pl_expr *expr, bool lane0)
{
    cg_pointer_map *known = lane0 ? &v->scalar : &v->vector;
    void *found;
    if (cg_pointer_map_get(known, expr, &found)) return found;
    LLVMValueRef value = evaluate_node(v, expr, lane0);
    cg_pointer_map_put(known, expr, value);
    return value;
}

static LLVMValueRef evaluate_all_lanes(evaluation *v, const pl_expr *expr)
{
    LLVMValueRef value = evaluate(v, expr, false);
    return cg_lanes(value) < v->scope->lanes ? cg_splat(v->e, value, v->scope->lanes) : value;
}

LLVMValueRef cg_expr(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_expr *expr)
{
    evaluation v;
    evaluation_init(&v, e, scope, plan);
    return evaluate_all_lanes(&v, expr);
}

/* All values are computed before the first store. So common sub-expressions are computed once, and a store never
 * separates two loads that the optimiser could merge. */
void cg_expr_stores(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_store *stores, int count)
{
    evaluation v;
    access target[PL_MAX_STORES];
    LLVMValueRef value[PL_MAX_STORES];
    assert(count <= PL_MAX_STORES);
    evaluation_init(&v, e, scope, plan);
    for (int i = 0; i < count; i++) {
        mdot_dtype dtype = cg_stored_dtype(e->target, &plan->buffers[stores[i].buffer]);
        value[i] = cg_to_storage(e, evaluate_all_lanes(&v, stores[i].value), dtype);
        target[i] = access_at(&v, stores[i].buffer, stores[i].index, false);
    }
    for (int i = 0; i < count; i++) store(e, &target[i], value[i], scope->lanes);
}

LLVMValueRef cg_loop_extent(cg_emitter *e, const pl_kernel *kernel, int loop, ir_dim extent,
                            const LLVMValueRef *buffers)
{
    LLVMValueRef all = cg_dim(e, extent);
    const pl_row_limit *limit = kernel->limit;
    if (limit == NULL || limit->loop != loop) return all;
    LLVMValueRef count = cg_load(e, e->i64, buffers[limit->count], 0);
    return cg_imin(e, cg_imul(e, count, cg_int(e, limit->points)), all);
}
