/* vectorise.c — selects the loop of a nest that becomes vectors, by a rough count of instructions per point.
 *
 * Element access decides. An operand that moves by one element (or 0) along the loop costs one load per vector, and by
 * two elements two loads and a shuffle. Any other costs a load and an insertion per lane. Integer division has no
 * vector instruction. Any other operation costs as much per vector as per scalar. Costs of a reduction's body outweigh
 * those of its stores.
 */
#include "codegen/cpu/cpu_values.h"

#include "codegen/cpu/cpu_target.h"
#include "plan/expr.h"

enum {
    MAX_BLOCK = 4,
    DIVISION_COST = 8,
    MULTIPLY_HIGH_COST = 3, /* division by a constant, which has no vector instruction in 64 bits either */
    FUNCTION_COST = 15,     /* exp, tanh, … */
    VISIT_BUDGET = 4096     /* nodes; a larger expression is judged by its beginning */
};

typedef struct cost_estimate { /* an expression's cost along one loop, for `lanes` points */
    int loop, lanes;
    int budget;
    double scalar_cost; /* of one point */
    double vector_cost; /* of `lanes` points */
} cost_estimate;

static bool is_integer_division(const pl_expr *expr)
{
    bool divides = expr->op == PL_DIV || expr->op == PL_FLOORDIV || expr->op == PL_PYMOD || expr->op == PL_FMOD;
    return divides && !ir_dtype_is_float(expr->dtype);
}

static void count_node(cost_estimate *s, const pl_expr *expr)
{
    if (is_integer_division(expr)) {
        int cost = expr->arg[1]->op == PL_CONST ? MULTIPLY_HIGH_COST : DIVISION_COST;
        s->scalar_cost += cost;
        s->vector_cost += cost * s->lanes;
    } else {
        bool is_free = expr->op <= PL_LENGTH || expr->op == PL_ACC;
        int cost = is_free ? 0 : pl_expr_op_is_function(expr->op) ? FUNCTION_COST : 1;
        s->scalar_cost += cost;
        s->vector_cost += cost * (double)mdot_dtype_size_bytes(expr->dtype) / 4;
    }
}

static void count(cost_estimate *s, const pl_expr *expr)
{
    if (s->budget-- <= 0) return;
    count_node(s, expr);
    int64_t stride;
    bool regular = false;
    if (expr->op == PL_LOAD) {
        regular = pl_expr_stride(expr->arg[0], s->loop, &stride);
        if (regular && stride == 2)
            s->vector_cost += 2;
        else if (!regular || stride < -1 || stride > 1)
            s->vector_cost += 1.5 * s->lanes;
    }
    if (regular) return; /* index computations are scalar, and most of them are outside the loop */
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++) count(s, expr->arg[i]);
}

static bool loads_from(const pl_expr *expr, int buffer, int *budget)
{
    if (--*budget <= 0) return true; /* the safe answer */
    if (expr->op == PL_LOAD && expr->i == buffer) return true;
    for (int i = 0; i < pl_expr_operand_count(expr->op); i++)
        if (loads_from(expr->arg[i], buffer, budget)) return true;
    return false;
}

bool cg_is_in_place(const pl_nest *nest)
{
    int budget = VISIT_BUDGET;
    for (int s = 0; s < nest->store_count; s++) {
        int buffer = nest->store[s].buffer;
        if (nest->body != NULL && loads_from(nest->body, buffer, &budget)) return true;
        for (int t = 0; t < nest->store_count; t++)
            if (loads_from(nest->store[t].value, buffer, &budget) || loads_from(nest->store[t].index, buffer, &budget))
                return true;
    }
    return false;
}

bool cg_stores_along(const pl_nest *nest, int loop)
{
    for (int s = 0; s < nest->store_count; s++) {
        int64_t stride;
        if (!pl_expr_stride(nest->store[s].index, loop, &stride) || stride != 1) return false;
    }
    return true;
}

static size_t widest_element(const pl_plan *plan, const pl_nest *nest)
{
    size_t widest = nest->body != NULL ? mdot_dtype_size_bytes(nest->body->dtype) : 0;
    for (int s = 0; s < nest->store_count; s++) {
        size_t size = mdot_dtype_size_bytes(plan->buffers[nest->store[s].buffer].type.dtype);
        if (size > widest) widest = size;
    }
    return widest;
}

/* Halves `count` until as many units are within the extent; at least 1. */
static int halve_to_fit(int count, int unit, ir_dim extent)
{
    while (count > 1 && ir_dim_is_number(extent) && (int64_t)count * unit > extent.offset) count /= 2;
    return count;
}

/* Cost per point if `loop` becomes vectors; *out_scalar: cost of scalar code. */
static double cost_along(const pl_nest *nest, int loop, int lanes, double *out_scalar)
{
    cost_estimate s = {.loop = loop, .lanes = lanes, .budget = VISIT_BUDGET};
    if (nest->body != NULL) {
        count(&s, nest->body);
    } else {
        for (int i = 0; i < nest->store_count; i++) {
            int64_t stride;
            bool dense = pl_expr_stride(nest->store[i].index, loop, &stride) && (stride == 1 || stride == -1);
            s.scalar_cost += 1;
            s.vector_cost += dense ? 1 : 1.5 * lanes;
            count(&s, nest->store[i].value);
        }
    }
    *out_scalar = s.scalar_cost;
    ir_dim extent = nest->extent[loop];
    int64_t iterations = ir_dim_is_number(extent) ? (extent.offset + lanes - 1) / lanes : 0;
    return iterations ? s.vector_cost * (double)iterations / (double)extent.offset : s.vector_cost / lanes;
}

cg_vectorisation cg_choose_vectorisation(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target)
{
    cg_vectorisation best = {.loop = -1, .lanes = 1, .block = 1, .in_place = cg_is_in_place(nest)};
    int maximum = widest_element(plan, nest) > 4 ? target->lanes / 2 : target->lanes;
    bool lanes_reduce = nest->body != NULL && nest->reducer >= PL_REDUCE_SUM && nest->reducer <= PL_REDUCE_MIN;
    int loops = nest->loop_count + (lanes_reduce ? nest->reduce_count : 0);
    double best_cost = 0;
    for (int loop = loops - 1; loop >= 0; loop--) {
        bool reduces = loop >= nest->loop_count;
        int lanes = halve_to_fit(maximum, 1, nest->extent[loop]);
        if (lanes < 2) continue;
        double scalar, cost = cost_along(nest, loop, lanes, &scalar);
        if (reduces) cost += 0.25; /* lanes are summed at the end, so an output's loop is preferred at equal cost */
        if (cost >= (best.loop < 0 ? scalar : best_cost)) continue;
        best_cost = cost;
        best.loop = loop;
        best.lanes = lanes;
    }
    if (best.loop >= 0 && nest->body != NULL) best.block = halve_to_fit(MAX_BLOCK, best.lanes, nest->extent[best.loop]);
    return best;
}
