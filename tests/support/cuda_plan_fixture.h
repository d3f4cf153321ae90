/* cuda_plan_fixture.h — graphs as the CUDA generator gets them, in an arena that a program's tests share. */
#ifndef CUDA_PLAN_FIXTURE_H
#define CUDA_PLAN_FIXTURE_H

#include "codegen/cuda/grid_stages.h"

extern ir_arena *cuda_arena;

/* For cmocka_run_group_tests: the arena is there meanwhile. */
int cuda_arena_begin(void **state);
int cuda_arena_end(void **state);

/* encoder_model.h's, imported. */
ir_graph *cuda_encoder(int layers);
/* The graph after all passes, planned and cut for the schedule that there is. Fails the running test where it can't be.
 */
cu_stages *cuda_stages_of(ir_graph *graph, int64_t max_length);

#endif
