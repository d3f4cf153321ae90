/* verify_inputs.c — inputs to verify an artefact on if random ones are unsuitable: tensors in a folder, or the inputs
 * of job predictions. */
#include "base/struct_version.h"
#include "compiler/compiler.h"

#include <string.h>

mdot_status co_verify_inputs_in_folder(const ir_graph *graph, const char *folder, ir_arena *arena,
                                       co_verify_inputs *out_inputs, mdot_error *err)
{
    int count;
    co_verify_inputs provided = {.tensors = IR_NEW_ARRAY(arena, const ir_tensor *, CO_MAX_TENSORS)};
    if (provided.tensors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(co_read_tensors(arena, folder, "input", provided.tensors, &count, err));
    if (count != graph->input_count)
        return BS_INVALID(err, "%s: the folder has %d files input_<k>.pb, but the model has %d inputs", folder, count,
                          graph->input_count);
    for (int i = 0; i < count; i++) {
        const ir_value *input = graph->inputs[i];
        provided.tensors[i] = co_reinterpret(arena, provided.tensors[i], input->type.dtype);
        int64_t length = co_solve_length(&input->type, provided.tensors[i]);
        bool differs = length > 0 && provided.length > 0 && length != provided.length;
        if (length < 0 || differs || provided.tensors[i]->dtype != input->type.dtype)
            return BS_INVALID(err, "%s: input_%d.pb does not match input \"%s\" of the model%s", folder, i, input->name,
                              differs ? " at the length of the preceding inputs" : "");
        if (length > 0) provided.length = length;
    }
    *out_inputs = provided;
    return MDOT_OK;
}

/* Copies the input, because inputs of jobs are destroyed before the verification uses them. */
static const ir_tensor *copy_input(ir_arena *arena, const mdot_input *input)
{
    ir_tensor *tensor = IR_NEW(arena, ir_tensor);
    if (tensor == NULL) return NULL;
    *tensor = (ir_tensor){.dtype = input->dtype, .rank = input->rank};
    memcpy(tensor->dims, input->dims, (size_t)input->rank * sizeof *input->dims);
    tensor->count = ir_count_elements(tensor->rank, tensor->dims);
    size_t size = mdot_dtype_size_bytes(input->dtype);
    void *data = ir_arena_alloc(arena, (size_t)tensor->count * size + MDOT_ABI_ALIGNMENT, 1);
    if (data == NULL) return NULL;
    memcpy(data, input->data, (size_t)tensor->count * size);
    tensor->data = data;
    return tensor;
}

static mdot_status copy_inputs(const ir_graph *graph, const mdot_job_inputs *inputs, ir_arena *arena,
                               co_verify_inputs *out_inputs, mdot_error *err)
{
    co_verify_inputs provided = {.tensors = IR_NEW_ARRAY(arena, const ir_tensor *, graph->input_count + 1)};
    bool copied = provided.tensors != NULL;
    for (int i = 0; copied && i < graph->input_count; i++) {
        mdot_input input;
        mdot_status status = mdot_job_inputs_get(inputs, (size_t)i, &input);
        if (status != MDOT_OK)
            return mdot_fail(err, status, "input \"%s\" is not an input of a job predictor", graph->inputs[i]->name);
        provided.tensors[i] = copy_input(arena, &input);
        copied = provided.tensors[i] != NULL;
        int64_t length = copied ? co_solve_length(&graph->inputs[i]->type, provided.tensors[i]) : 0;
        if (length > 0) provided.length = length;
    }
    if (!copied) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out_inputs = provided;
    return MDOT_OK;
}

mdot_status co_verify_inputs_of_jobs(const ir_graph *graph, mdot_context *context, size_t entry,
                                     const mdot_job *const *jobs, const mdot_configuration *configurations,
                                     size_t count, ir_arena *arena, co_verify_inputs *out_inputs, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_job_inputs *inputs = NULL;
        mdot_error reason = {0};
        status = mdot_job_inputs_create(context, entry, jobs[i], bs_struct_at(configurations, i), &inputs, &reason);
        if (status == MDOT_OK) status = copy_inputs(graph, inputs, arena, &out_inputs[i], &reason);
        mdot_job_inputs_destroy(inputs);
        if (status != MDOT_OK) return mdot_fail(err, status, "pair %zu: %s", i, reason.message);
    }
    return status;
}
