/* context.c — the per-thread state of running: scratch memory for the largest bucket, arrays to order a call's tensors,
 * the other components' states, and a device context if the predictor has a device. */
#include "base/struct_version.h"
#include "runtime/core/objects.h"
#include "runtime/core/run.h"

/* Scratch memory that a context touches when it is created. Calls of usual models then take no page fault. The rest of
 * a large scratch is committed by the calls that reach it, so short lengths do not pay for the longest bucket. */
static const size_t touched_bytes = 16 << 20;

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

static size_t count_extensions(const rt_components *components)
{
    size_t count = 0;
    while (components->extensions[count] != NULL) count++;
    return count;
}

static mdot_status create_states(mdot_context *context, mdot_error *err)
{
    const mdot_predictor *predictor = context->predictor;
    const rt_extension *const *extensions = predictor->components->extensions;
    for (size_t i = 0; extensions[i] != NULL; i++) BS_TRY(extensions[i]->create(predictor, &context->states[i], err));
    return MDOT_OK;
}

/* With "auto", a context falls back to the CPU if the device is out of memory: a scheduler gets answers in any case. */
static mdot_status use_device(mdot_context *context, mdot_error *err)
{
    const mdot_predictor *predictor = context->predictor;
    if (predictor->device == NULL) return MDOT_OK;
    mdot_error reason = {0};
    mdot_status status = predictor->device_ops->create_context(predictor->device, &context->device, &reason);
    if (status == MDOT_OK) return MDOT_OK;
    if (predictor->device_is_required) return mdot_fail(err, status, "%s", reason.message);
    context->device_error = reason;
    return MDOT_OK;
}

/* Scratch for the largest bucket, plus worker_bytes for each further worker. */
static size_t scratch_bytes_for(const mdot_predictor *predictor, uint32_t workers)
{
    const mdot_abi_table *table = predictor->table;
    size_t bytes = 0;
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const mdot_abi_entry *entry = rt_entry(table, i);
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            const mdot_abi_cpu_function *f = &predictor->functions[rt_buckets(table, entry)[b].number];
            bytes = max_size(bytes, (size_t)(f->scratch_bytes + (workers - 1) * f->worker_bytes));
        }
    }
    return bytes;
}

static const bs_struct_version options_type = BS_SIZED(mdot_context_options, user);

static mdot_status read_options(const mdot_context_options *theirs, mdot_context_options *out, mdot_error *err)
{
    mdot_context_options options = {0};
    BS_TRY(theirs != NULL ? bs_read_struct(&options_type, theirs, &options, err) : MDOT_OK);
    if (options.reserved != 0)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the context's options set reserved, which mdot %s does not know: use a newer version of "
                         "mdot, or set it to 0",
                         MDOT_VERSION_STRING);
    if (options.threads > RT_MOST_WORKERS)
        return BS_INVALID(err, "threads is at most %d; it is %u", RT_MOST_WORKERS, options.threads);
    if (options.threads == 0) options.threads = 1;
    *out = options;
    return MDOT_OK;
}

mdot_status rt_context_create(const mdot_predictor *predictor, const mdot_context_options *options,
                              mdot_context **out_context, mdot_error *err)
{
    const mdot_abi_table *table = predictor->table;
    size_t input_count = 0, output_count = 0, state_count = count_extensions(predictor->components);
    for (uint32_t i = 0; i < table->entry_count; i++) {
        input_count = max_size(input_count, rt_entry(table, i)->input_count);
        output_count = max_size(output_count, rt_entry(table, i)->output_count);
    }
    size_t scratch_bytes = scratch_bytes_for(predictor, options->threads);
    /* rt_alloc clears memory, which touches every page. The table's size bounds the counts. */
    mdot_context *context =
        rt_alloc(&predictor->allocator, sizeof *context + (input_count + output_count + state_count) * sizeof(void *));
    void *scratch = rt_alloc_touched(&predictor->allocator, scratch_bytes, touched_bytes);
    if (context == NULL || scratch == NULL) {
        rt_free(&predictor->allocator, scratch);
        rt_free(&predictor->allocator, context);
        return BS_OUT_OF_MEMORY(err, "a context of %zu bytes", scratch_bytes);
    }
    context->predictor = predictor;
    rt_predictor_keep(predictor);
    context->scratch = scratch;
    context->inputs = (const void **)(context + 1);
    context->outputs = (void **)(context->inputs + input_count);
    context->states = context->outputs + output_count;
    rt_handle_register(context, RT_CONTEXT);
    mdot_status status = MDOT_OK;
    if (options->threads > 1) status = rt_workers_create(&predictor->allocator, options, &context->workers, err);
    if (status == MDOT_OK) status = rt_ragged_batch_create(&predictor->allocator, table, &context->batch, err);
    if (status == MDOT_OK) status = create_states(context, err);
    if (status == MDOT_OK) status = use_device(context, err);
    if (status != MDOT_OK) {
        mdot_context_destroy(context);
        return status;
    }
    *out_context = context;
    return MDOT_OK;
}

static mdot_status create_validated(const mdot_predictor *predictor, const mdot_context_options *options,
                                    mdot_context **out_context, const char *function, mdot_error *err)
{
    if (predictor == NULL || out_context == NULL)
        return BS_INVALID(err, "%s: predictor or out_context is NULL", function);
    mdot_context_options read;
    mdot_status status = rt_handle_check(predictor, RT_PREDICTOR, function, err);
    if (status == MDOT_OK) status = read_options(options, &read, err);
    return status == MDOT_OK ? rt_context_create(predictor, &read, out_context, err) : status;
}

mdot_status mdot_context_create(const mdot_predictor *predictor, mdot_context **out_context, mdot_error *err)
{
    return create_validated(predictor, NULL, out_context, __func__, err);
}

mdot_status mdot_context_create_with(const mdot_predictor *predictor, const mdot_context_options *options,
                                     mdot_context **out_context, mdot_error *err)
{
    return create_validated(predictor, options, out_context, __func__, err);
}

mdot_status mdot_context_get_device_status(const mdot_context *context, const char **out_message)
{
    if (context == NULL || out_message == NULL) return MDOT_INVALID_ARGUMENT;
    if (rt_handle_enter(context, __func__, NULL) != MDOT_OK) return MDOT_INVALID_ARGUMENT;
    mdot_status status = context->device_error.status;
    *out_message = context->device_error.message;
    rt_handle_leave(context);
    return status;
}

void mdot_context_destroy(mdot_context *context)
{
    if (context == NULL || !rt_handle_unregister(context, RT_CONTEXT, __func__)) return;
    const mdot_predictor *predictor = context->predictor;
    rt_workers_destroy(&predictor->allocator, context->workers);
    if (context->device != NULL) predictor->device_ops->destroy_context(context->device);
    for (size_t i = count_extensions(predictor->components); i-- > 0;)
        if (context->states[i] != NULL) predictor->components->extensions[i]->destroy(predictor, context->states[i]);
    rt_ragged_batch_destroy(&predictor->allocator, &context->batch);
    rt_free(&predictor->allocator, context->scratch);
    if (!rt_validates_handles()) rt_free(&predictor->allocator, context);
    rt_predictor_release(predictor);
}

void *rt_context_state(const mdot_context *context, const rt_extension *extension)
{
    const rt_extension *const *extensions = context->predictor->components->extensions;
    for (size_t i = 0; extensions[i] != NULL; i++)
        if (extensions[i] == extension) return context->states[i];
    return NULL;
}

const mdot_predictor *rt_context_predictor(const mdot_context *context) { return context->predictor; }

bool rt_fell_back(const mdot_context *context) { return context->device_error.status != MDOT_OK; }
