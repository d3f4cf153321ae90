/* context.c — what one thread needs to run: scratch memory for the largest bucket, room to put a call in order, and its
 * share of a GPU where the predictor has one.
 */
#include "runtime/core/device.h"
#include "runtime/job/predict.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* "auto" takes the CPU where the GPU has no room left: a scheduler is to get its answers. */
static mdot_status use_device(mdot_context *context, mdot_error *err)
{
    const mdot_predictor *predictor = context->predictor;
    if (predictor->cuda == NULL) return MDOT_OK;
    mdot_error reason = {0};
    mdot_status status = rt_cuda_context_create(predictor->cuda, &context->cuda, &reason);
    if (status == MDOT_OK) return MDOT_OK;
    if (predictor->device_is_required) return mdot_fail(err, status, "%s", reason.message);
    context->device_error = reason;
    return MDOT_OK;
}

mdot_status mdot_context_create(const mdot_predictor *predictor, mdot_context **out_context, mdot_error *err)
{
    if (predictor == NULL || out_context == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdot_context_create needs a predictor and a place for the result");
    const mdot_abi_table *table = predictor->table;
    size_t scratch_bytes = 0, input_count = 0, output_count = 0;
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const mdot_abi_entry *entry = rt_entry(table, i);
        input_count = max_size(input_count, entry->input_count);
        output_count = max_size(output_count, entry->output_count);
        for (uint32_t b = 0; b < entry->bucket_count; b++)
            scratch_bytes = max_size(scratch_bytes, (size_t)rt_buckets(table, entry)[b].scratch_bytes);
    }
    /* rt_alloc clears what it gives, which touches every page; the counts are bounded by the table's size */
    mdot_context *context =
        rt_alloc(&predictor->allocator, sizeof *context + (input_count + output_count) * sizeof(void *));
    void *scratch = rt_alloc(&predictor->allocator, scratch_bytes);
    if (context == NULL || scratch == NULL) {
        rt_free(&predictor->allocator, scratch);
        rt_free(&predictor->allocator, context);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a context of %zu bytes", scratch_bytes);
    }
    context->predictor = predictor;
    context->scratch = scratch;
    context->inputs = (const void **)(context + 1);
    context->outputs = (void **)(context->inputs + input_count);
    mdot_status status = rt_job_tensors_create(predictor, &context->jobs, err);
    if (status == MDOT_OK) status = use_device(context, err);
    if (status != MDOT_OK) {
        mdot_context_destroy(context);
        return status;
    }
    *out_context = context;
    return MDOT_OK;
}

mdot_status mdot_context_get_device_status(const mdot_context *context, const char **out_message)
{
    *out_message = context->device_error.message;
    return context->device_error.status;
}

void mdot_context_destroy(mdot_context *context)
{
    if (context == NULL) return;
    rt_cuda_context_destroy(context->cuda);
    const rt_allocator *allocator = &context->predictor->allocator;
    rt_free(allocator, context->jobs);
    rt_free(allocator, context->scratch);
    rt_free(allocator, context);
}
