/* planner.h — a plan from a graph, its rules and its text. */
#pragma once

#include "plan/plan.h"

/* build.c: plans a graph after all passes: types are inferred, operators are supported, every symbol except L is bound.
 * UNSUPPORTED names the node. */
mdot_status pl_build(const ir_graph *graph, ir_arena *arena, pl_plan **out_plan, mdot_error *err);

/* buffer_assignment.c: assigns scratch offsets so that buffers that are live at the same time do not overlap. */
bool pl_assign_memory(pl_plan *plan);

/* ---- limit_rows.c: finds the kernels that may leave out rows, because a scatter reads only as many as NonZero
 * selects. A backend may compute them nevertheless. */

/* Sets `limit` of kernels, after all kernels and live ranges exist. False: out of memory. */
bool pl_limit_rows(pl_plan *plan);

/* ---- batched_kernels.c: selects the kernels that process the rows of several items at once, in a call with several
 * items. The decision is common to all backends.
 *
 * The matrices of such a kernel have the rows of all items, and its weights are read once. Kernels that combine units
 * across the length, for example attention, run item by item.
 */

/* Sets is_rowwise of every kernel and most_items of the plan, after all kernels exist. */
void pl_decide_items(pl_plan *plan);

/* ---- precision.c: selects the buffers that images with 16-bit precision keep in 16 bits. The decision is common to
 * all backends.
 *
 * A matrix kernel rounds the factors of its products when it reads them. Therefore a buffer that only matrix kernels
 * read is stored in rounded form. A residual, which a norm also reads, stays in f32, and so do sums, statistics, inputs
 * and outputs. The results are the same whether a matrix kernel rounds a factor or reads it in rounded form, because
 * rounding twice changes nothing.
 */

/* Sets `reads` of every buffer, after all kernels exist. */
void pl_decide_precision(pl_plan *plan);

/* verify_plan.c: checks buffer numbers, dtypes, operands of kernels, the memory plan, and index bounds if they are
 * affine. */
mdot_status pl_verify(const pl_plan *plan, mdot_error *err);

/* print_plan.c: prints the plan as text, one line per buffer and one block per kernel; for --dump plan and golden
 * tests. */
char *pl_print(const pl_plan *plan, ir_arena *arena);
