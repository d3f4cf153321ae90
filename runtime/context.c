/* context.c — what one thread needs to run: scratch memory for the largest bucket, and room to put a call in order. */
#include "runtime/predictor.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
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
    *out_context = context;
    return MDOT_OK;
}

void mdot_context_destroy(mdot_context *context)
{
    if (context == NULL) return;
    const rt_allocator *allocator = &context->predictor->allocator;
    rt_free(allocator, context->scratch);
    rt_free(allocator, context);
}
