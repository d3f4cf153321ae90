/* cuda_plan_fixture.h — graphs in the CUDA generator's input form, in an arena shared by a program's tests. */
#pragma once

#include "codegen/cuda/cuda_stages.h"

extern ir_arena *cuda_arena;

/* For cmocka_run_group_tests, which creates and destroys the arena. */
int cuda_arena_begin(void **state);
int cuda_arena_end(void **state);

/* The model of encoder_model.h, imported. */
ir_graph *cuda_encoder(int layers);
/* Runs all passes, plans the graph and divides it into stages for the default schedule. Fails the running test if
 * this fails. */
cu_stages *cuda_stages_of(ir_graph *graph, int64_t max_length);
