/* cuda_plan_fixture.c — see cuda_plan_fixture.h. */
#include "tests/support/cuda_plan_fixture.h"

#include "codegen/cuda/cuda_stages.h"
#include "frontend/onnx/onnx.h"
#include "ir/passes.h"
#include "plan/planner.h"
#include "tests/support/encoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

ir_arena *cuda_arena;

int cuda_arena_begin(void **state)
{
    (void)state;
    cuda_arena = ir_arena_create(0);
    return cuda_arena == NULL;
}

int cuda_arena_end(void **state)
{
    (void)state;
    ir_arena_destroy(cuda_arena);
    cuda_arena = NULL;
    return 0;
}

ir_graph *cuda_encoder(int layers)
{
    pb_buffer model = encoder_model(layers);
    ir_graph *graph = NULL;
    mdot_error err = {0};
    unsigned char *bytes = ir_arena_alloc(cuda_arena, model.size, 1); /* the graph's weights point into these bytes */
    assert_non_null(bytes);
    memcpy(bytes, model.data, model.size);
    size_t size = model.size;
    pb_free(&model);
    if (fe_import_bytes(bytes, size, "encoder.onnx", NULL, NULL, cuda_arena, &graph, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return graph;
}

cu_stages *cuda_stages_of(ir_graph *graph, int64_t max_length)
{
    mdot_error err = {0};
    pl_plan *plan;
    cu_stages *stages = IR_NEW(cuda_arena, cu_stages);
    assert_non_null(stages);
    graph->max_length = max_length;
    if (ir_run_passes(graph, NULL, &err) != MDOT_OK || pl_build(graph, cuda_arena, &plan, &err) != MDOT_OK ||
        cu_find_stages(plan, &cu_blocks, cuda_arena, stages, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return stages;
}
