/* run.c — one call: determines its length and bucket and enters the bucket's code.
 *
 * This file never allocates, locks or, on the CPU, calls the operating system; tests/runtime/core/test_runtime_run.c
 * checks that.
 */
#include "runtime/core/run.h"
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"

#include <string.h>

/* Linear search, because buckets are few and ascending. Returns bucket_count for lengths outside the entry's range. */
static uint32_t find_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length)
{
    const mdot_abi_bucket *buckets = rt_buckets(table, entry);
    if (length < entry->least_length) return entry->bucket_count;
    uint32_t bucket = 0;
    while (bucket < entry->bucket_count && buckets[bucket].max_length < length) bucket++;
    return bucket;
}

mdot_status mdot_predictor_find_bucket(const mdot_predictor *predictor, size_t entry, int64_t length,
                                       size_t *out_bucket)
{
    if (predictor == NULL || out_bucket == NULL) return MDOT_INVALID_ARGUMENT;
    if (!rt_handle_is_live(predictor, RT_PREDICTOR, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    if (entry >= table->entry_count) return MDOT_OUT_OF_RANGE;
    uint32_t bucket = find_bucket(table, rt_entry(table, entry), length);
    if (bucket == rt_entry(table, entry)->bucket_count) return MDOT_OUT_OF_RANGE;
    *out_bucket = bucket;
    return MDOT_OK;
}

mdot_status rt_check_entry(const mdot_abi_table *table, size_t entry, mdot_error *err)
{
    if (entry < table->entry_count) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "entry %zu is out of range; the artefact has %u", entry,
                     table->entry_count);
}

mdot_status rt_check_length(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, mdot_error *err)
{
    if (find_bucket(table, entry, length) < entry->bucket_count) return MDOT_OK;
    if (!entry->least_length)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "entry %s lacks a length: pass 0 instead of %lld",
                         rt_string(table, entry->name_at), (long long)length);
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "entry %s takes lengths from %u to %lld; the length is %lld",
                     rt_string(table, entry->name_at), entry->least_length,
                     (long long)rt_buckets(table, entry)[entry->bucket_count - 1].max_length, (long long)length);
}

static const mdot_abi_bucket *bucket_of(const mdot_context *context, const mdot_abi_entry *entry, int64_t length)
{
    const mdot_abi_table *table = context->predictor->table;
    return &rt_buckets(table, entry)[find_bucket(table, entry, length)];
}

/* The code offset is relative to the code section: mdot_abi.h. */
rt_code rt_code_of(const mdot_context *context, const mdot_abi_bucket *bucket)
{
    const mdot_predictor *predictor = context->predictor;
    const rt_artefact *artefact = &predictor->library->artefact;
    uint32_t number = predictor->functions[bucket->number].code;
    return (rt_code){(mdot_abi_function)((uintptr_t)artefact->code + (uintptr_t)artefact->code[number]),
                     rt_kernels(predictor->table, bucket)};
}

mdot_abi_call rt_call_of(const mdot_context *context, const mdot_abi_bucket *bucket, int64_t length)
{
    const mdot_predictor *predictor = context->predictor;
    return (mdot_abi_call){
        .weights = predictor->library->artefact.weights + predictor->image->weights_offset,
        .scratch = context->scratch,
        .length = length,
        .kernel_end = bucket->kernel_count,
        .share_end = MDOT_ABI_WHOLE_SLICE,
    };
}

/* Passes calls to the workers in groups of AT_ONCE. */
static void run_split(mdot_context *context, const rt_code *code, const mdot_abi_call *common, const rt_item *items,
                      size_t count)
{
    enum { AT_ONCE = 16 };
    mdot_abi_call calls[AT_ONCE];
    for (size_t first = 0, some; first < count; first += some) {
        some = count - first < AT_ONCE ? count - first : AT_ONCE;
        for (size_t i = 0; i < some; i++) {
            calls[i] = *common;
            calls[i].inputs = items[first + i].inputs;
            calls[i].outputs = items[first + i].outputs;
        }
        rt_workers_run(context->workers, code, calls, some);
    }
}

void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count)
{
    const mdot_abi_bucket *bucket = bucket_of(context, entry, length);
    rt_code code = rt_code_of(context, bucket);
    mdot_abi_call call = rt_call_of(context, bucket, length);
    if (rt_workers_split(context->workers, length)) {
        run_split(context, &code, &call, items, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        call.inputs = items[i].inputs;
        call.outputs = items[i].outputs;
        code.function(&call);
    }
}

/* A failed device is never used again. After most CUDA errors all CUDA calls fail until the process ends, and a hung
 * GPU would cost its time limit in every call. */
void rt_run_many(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items, size_t count)
{
    mdot_error *failure = &context->device_error;
    if (context->device != NULL && failure->status == MDOT_OK) {
        const rt_device_ops *ops = context->predictor->device_ops;
        const mdot_abi_bucket *bucket = bucket_of(context, entry, length);
        if (ops->run(context->device, entry, bucket, length, items, count, failure) == MDOT_OK) return;
    }
    rt_run_on_cpu(context, entry, length, items, count);
}

static mdot_status check_call(const mdot_abi_table *table, size_t entry, int64_t length, mdot_error *err)
{
    mdot_status status = rt_check_entry(table, entry, err);
    return status == MDOT_OK ? rt_check_length(table, rt_entry(table, entry), length, err) : status;
}

static mdot_status run_ordered(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                               void *const *outputs, mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    BS_TRY(check_call(table, entry, length, err));
    rt_run_many(context, rt_entry(table, entry), length, &(rt_item){inputs, outputs}, 1);
    return MDOT_OK;
}

mdot_status mdot_run_ordered(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                             void *const *outputs, mdot_error *err)
{
    if (context == NULL || inputs == NULL || outputs == NULL)
        return BS_INVALID(err, "mdot_run_ordered: context, inputs or outputs is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = run_ordered(context, entry, length, inputs, outputs, err);
    rt_handle_leave(context);
    return status;
}

static mdot_status run_step(mdot_context *context, size_t entry, int64_t length, const rt_item *item, size_t step,
                            mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    BS_TRY(check_call(table, entry, length, err));
    const mdot_abi_bucket *bucket = bucket_of(context, rt_entry(table, entry), length);
    const mdot_abi_kernel *kernels = rt_kernels(table, bucket);
    uint32_t begin = 0, end = 0;
    for (size_t i = 0; i <= step; i++) {
        begin = end;
        if (begin == bucket->kernel_count)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "entry %s has %zu steps at length %lld; step %zu is out of range",
                             rt_string(table, rt_entry(table, entry)->name_at), i, (long long)length, step);
        end = rt_step_end(kernels, bucket->kernel_count, begin);
    }
    mdot_abi_call call = rt_call_of(context, bucket, length);
    call.inputs = item->inputs;
    call.outputs = item->outputs;
    call.kernel_begin = begin;
    call.kernel_end = end;
    rt_code_of(context, bucket).function(&call);
    return MDOT_OK;
}

mdot_status mdot_run_step(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                          void *const *outputs, size_t step, mdot_error *err)
{
    if (context == NULL || inputs == NULL || outputs == NULL)
        return BS_INVALID(err, "mdot_run_step: context, inputs or outputs is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = run_step(context, entry, length, &(rt_item){inputs, outputs}, step, err);
    rt_handle_leave(context);
    return status;
}

/* Finds the tensor named `name`, starting at `guess`, because callers usually keep the entry's order. Returns NULL
 * if it is unknown. */
static const mdot_abi_tensor *find_tensor(const mdot_abi_table *table, const mdot_abi_tensor *tensors, uint32_t count,
                                          const char *name, size_t guess)
{
    for (uint32_t i = 0; i < count; i++) {
        const mdot_abi_tensor *tensor = &tensors[(guess + i) % count];
        if (strcmp(rt_string(table, tensor->name_at), name) == 0) return tensor;
    }
    return NULL;
}

static mdot_status check_data(const char *name, const void *data, size_t element_bytes, uint64_t size_bytes,
                              mdot_error *err)
{
    if (data == NULL && size_bytes > 0) return BS_INVALID(err, "%s: data is NULL", name);
    if ((uintptr_t)data % element_bytes != 0)
        return BS_INVALID(err, "%s must be aligned to its element size of %zu bytes", name, element_bytes);
    return MDOT_OK;
}

/* Solves `size` = scale * length + offset for the length. If *length is already known (not 0), or if the dimension
 * is fixed, it compares instead. */
static mdot_status match_dim(const mdot_abi_dim *dim, const char *name, int i, int64_t size, int64_t *length,
                             mdot_error *err)
{
    if (!rt_has_length(dim)) {
        if (size == dim->offset) return MDOT_OK;
        return BS_INVALID(err, "dimension %d of %s is %lld; it must be %lld", i, name, (long long)size,
                          (long long)dim->offset);
    }
    int64_t scaled;
    if (size < 0 || __builtin_sub_overflow(size, dim->offset, &scaled) || scaled % dim->scale != 0)
        return BS_INVALID(err, "dimension %d of %s is %lld; it must be %lld * length + %lld", i, name, (long long)size,
                          (long long)dim->scale, (long long)dim->offset);
    int64_t solved = scaled / dim->scale;
    if (solved < 1)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "dimension %d of %s implies the invalid length %lld", i, name,
                         (long long)solved);
    if (*length != 0 && *length != solved)
        return mdot_fail(err, MDOT_OUT_OF_RANGE,
                         "dimension %d of %s implies the length %lld; another input implies %lld", i, name,
                         (long long)solved, (long long)*length);
    *length = solved;
    return MDOT_OK;
}

static mdot_status match_input(const mdot_abi_tensor *tensor, const char *name, const mdot_input *input,
                               int64_t *length, mdot_error *err)
{
    if (input->dtype != (mdot_dtype)tensor->dtype)
        return BS_INVALID(err, "input %s is %s; it must be %s", name, mdot_dtype_name(input->dtype),
                          mdot_dtype_name((mdot_dtype)tensor->dtype));
    if (input->rank != (int)tensor->rank)
        return BS_INVALID(err, "input %s must have rank %u; it has %d", name, tensor->rank, input->rank);
    if (input->rank > 0 && input->dims == NULL) return BS_INVALID(err, "input %s: dims is NULL", name);
    for (int i = 0; i < input->rank; i++) BS_TRY(match_dim(&tensor->dim[i], name, i, input->dims[i], length, err));
    uint64_t count = 1;
    for (int i = 0; i < input->rank; i++) count = input->dims[i] == 0 ? 0 : count;
    return check_data(name, input->data, mdot_dtype_size_bytes(input->dtype), count, err);
}

/* Fills context->inputs and determines the length, which is 0 in an entry with a fixed size. */
static mdot_status order_inputs(mdot_context *context, const mdot_abi_entry *entry, const mdot_input *inputs,
                                size_t input_count, int64_t *out_length, mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    const mdot_abi_tensor *tensors = rt_inputs(table, entry);
    if (input_count != entry->input_count)
        return BS_INVALID(err, "entry %s takes %u inputs; the call passes %zu", rt_string(table, entry->name_at),
                          entry->input_count, input_count);
    memset(context->inputs, 0, input_count * sizeof *context->inputs);
    int64_t length = 0;
    for (size_t i = 0; i < input_count; i++) {
        const char *name = inputs[i].name != NULL ? inputs[i].name : "";
        const mdot_abi_tensor *tensor = find_tensor(table, tensors, entry->input_count, name, i);
        if (tensor == NULL)
            return BS_INVALID(err, "entry %s lacks an input \"%s\"", rt_string(table, entry->name_at), name);
        if (context->inputs[tensor - tensors] != NULL) return BS_INVALID(err, "input %s is given twice", name);
        BS_TRY(match_input(tensor, name, &inputs[i], &length, err));
        /* an empty input may have NULL data; the pointer then only marks the input as given */
        context->inputs[tensor - tensors] = inputs[i].data != NULL ? inputs[i].data : context->scratch;
    }
    *out_length = length;
    return MDOT_OK;
}

static mdot_status order_outputs(mdot_context *context, const mdot_abi_entry *entry, const mdot_output *outputs,
                                 size_t output_count, int64_t length, mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    const mdot_abi_tensor *tensors = rt_outputs(table, entry);
    if (output_count != entry->output_count)
        return BS_INVALID(err, "entry %s has %u outputs; the call passes %zu", rt_string(table, entry->name_at),
                          entry->output_count, output_count);
    memset(context->outputs, 0, output_count * sizeof *context->outputs);
    for (size_t i = 0; i < output_count; i++) {
        const char *name = outputs[i].name != NULL ? outputs[i].name : "";
        const mdot_abi_tensor *tensor = find_tensor(table, tensors, entry->output_count, name, i);
        if (tensor == NULL)
            return BS_INVALID(err, "entry %s lacks an output \"%s\"", rt_string(table, entry->name_at), name);
        if (context->outputs[tensor - tensors] != NULL) return BS_INVALID(err, "output %s is given twice", name);
        size_t element_bytes = mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
        uint64_t size_bytes = rt_element_count(tensor, length) * element_bytes;
        if (outputs[i].size_bytes < size_bytes)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "output %s takes %llu bytes at length %lld; the buffer has %zu",
                             name, (unsigned long long)size_bytes, (long long)length, outputs[i].size_bytes);
        BS_TRY(check_data(name, outputs[i].data, element_bytes, size_bytes, err));
        context->outputs[tensor - tensors] = outputs[i].data != NULL ? outputs[i].data : context->scratch;
    }
    return MDOT_OK;
}

static mdot_status run_named(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                             const mdot_output *outputs, size_t output_count, mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    BS_TRY(rt_check_entry(table, entry, err));
    const mdot_abi_entry *e = rt_entry(table, entry);
    int64_t length = 0;
    BS_TRY(order_inputs(context, e, inputs, input_count, &length, err));
    BS_TRY(rt_check_length(table, e, length, err));
    BS_TRY(order_outputs(context, e, outputs, output_count, length, err));
    rt_run_many(context, e, length, &(rt_item){context->inputs, context->outputs}, 1);
    return MDOT_OK;
}

mdot_status mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                     const mdot_output *outputs, size_t output_count, mdot_error *err)
{
    if (context == NULL || (inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0))
        return BS_INVALID(err, "mdot_run: context, inputs or outputs is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = run_named(context, entry, inputs, input_count, outputs, output_count, err);
    rt_handle_leave(context);
    return status;
}
