/* loop_steps.h — the number of steps of a Loop (ONNX: a trip count, and a condition that is computed in each step).
 * Private to frontend/onnx.
 *
 * If the condition is known to be true, the number is the trip count. If it compares a counter with a bound, as in the
 * loops of TensorFlow and JAX (`i < n`, where each step computes i + 1), the number is the smaller of the bound minus
 * the counter's initial value, and the trip count.
 */
#ifndef FE_LOOP_STEPS_H
#define FE_LOOP_STEPS_H

#include "frontend/onnx/graph_edit.h"

#include <stdbool.h>

/* The type of the node in the flat model. Its inputs: the trip count and the initial condition (or none), the
 * condition behind a step, the index of the LoopBegin, and the next value of each state. */
#define FE_LOOP_STEPS "LoopSteps"
enum { FE_STEPS_TRIPS, FE_STEPS_FIRST, FE_STEPS_CONDITION, FE_STEPS_INDEX, FE_STEPS_NEXT };

/* Computes the number of steps from the values of these inputs. `name` is that of the loop. *out is an i64 of one
 * element. If the number depends on data, *out is the result of a node whose type states so. */
mdot_status fe_count_steps(fe_upgrader *u, const char *name, ir_value *const *inputs, int count, ir_value **out);

#endif
