/* batch_items.c — ragged batches: several items of an entry, each with its own length, in one call. Implements
 * mdot_run_many as mdot_abi_call specifies.
 *
 * Inputs are copied one after the other. Kernels run in order, and outputs are copied to the items' buffers. A
 * rowwise kernel is one call for the whole group; any other kernel is called once for each item. A device runs the
 * items of each length together.
 */
#include "runtime/core/objects.h"
#include "runtime/core/run.h"

#include <string.h>

typedef struct group {
    mdot_context *context;
    const mdot_abi_entry *entry;
    const mdot_abi_bucket *bucket;
    const mdot_item *items;
    uint32_t count;
    int64_t length; /* sum of the items' lengths */
    rt_code code;
} group;

/* Handles empty tensors, whose pointers may be NULL. */
static void copy(void *target, const void *source, size_t bytes)
{
    if (bytes > 0) memcpy(target, source, bytes);
}

static void copy_inputs(const group *g)
{
    const mdot_abi_tensor *tensors = rt_inputs(g->context->predictor->table, g->entry);
    unsigned char *at = g->context->batch.tensors;
    for (uint32_t t = 0; t < g->entry->input_count; t++) {
        unsigned char *to = at;
        g->context->inputs[t] = at;
        for (uint32_t i = 0; i < g->count; i++) {
            size_t bytes = (size_t)rt_tensor_bytes(&tensors[t], g->items[i].length);
            copy(to, g->items[i].inputs[t], bytes);
            to += bytes;
        }
        at += rt_tensor_capacity_bytes(g->bucket, &tensors[t]);
    }
}

/* Places the outputs after the inputs until copy_outputs. */
static void lay_out_outputs(const group *g)
{
    const mdot_abi_table *table = g->context->predictor->table;
    const mdot_abi_tensor *tensors = rt_outputs(table, g->entry);
    const rt_ragged_batch *batch = &g->context->batch;
    unsigned char *at = batch->tensors + rt_tensors_bytes(g->bucket, rt_inputs(table, g->entry), g->entry->input_count);
    for (uint32_t t = 0; t < g->entry->output_count; t++) {
        unsigned char *item_at = at;
        g->context->outputs[t] = at;
        for (uint32_t i = 0; i < g->count; i++) {
            batch->outputs[i * g->entry->output_count + t] = item_at;
            item_at += rt_tensor_bytes(&tensors[t], g->items[i].length);
        }
        at += rt_tensor_capacity_bytes(g->bucket, &tensors[t]);
    }
}

static void copy_outputs(const group *g)
{
    const mdot_abi_tensor *tensors = rt_outputs(g->context->predictor->table, g->entry);
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t t = 0; t < g->entry->output_count; t++)
            copy(g->items[i].outputs[t], g->context->batch.outputs[i * g->entry->output_count + t],
                 (size_t)rt_tensor_bytes(&tensors[t], g->items[i].length));
}

/* Runs consecutive rowwise kernels with the same unit_offset, from `begin` on, as one call. Returns the next kernel. */
static int64_t run_together(const group *g, int64_t begin)
{
    const mdot_abi_kernel *kernels = g->code.kernels;
    int64_t end = begin, offset = kernels[begin].unit_offset;
    while (end < g->bucket->kernel_count && kernels[end].is_rowwise && kernels[end].unit_offset == offset) end++;
    mdot_abi_call call = rt_call_of(g->context, g->bucket, g->length + (g->count - 1) * offset);
    call.inputs = g->context->inputs;
    call.outputs = g->context->outputs;
    call.kernel_begin = begin;
    call.kernel_end = end;
    if (rt_workers_split(g->context->workers, call.length))
        rt_workers_run(g->context->workers, &g->code, &call, 1);
    else
        g->code.function(&call);
    return end;
}

static void run_item_by_item(const group *g, int64_t kernel)
{
    mdot_abi_call call = rt_call_of(g->context, g->bucket, 0);
    call.kernel_begin = kernel;
    call.kernel_end = kernel + 1;
    for (uint32_t i = 0; i < g->count; i++) {
        call.length = g->items[i].length;
        call.inputs = g->items[i].inputs;
        call.outputs = g->context->batch.outputs + i * g->entry->output_count;
        g->code.function(&call);
        call.before.count++;
        call.before.length += call.length;
        call.before.square += call.length * call.length;
    }
}

static void run_group(const group *g)
{
    copy_inputs(g);
    lay_out_outputs(g);
    for (int64_t kernel = 0; kernel < g->bucket->kernel_count;) {
        if (g->code.kernels[kernel].is_rowwise)
            kernel = run_together(g, kernel);
        else
            run_item_by_item(g, kernel++);
    }
    copy_outputs(g);
}

/* Sets the number of items, from the first on, in one group, and the group's length. */
static void take_items(group *g, size_t count)
{
    g->count = 1;
    g->length = g->items[0].length;
    int64_t space = g->bucket->max_length; /* remaining space for lengths */
    while (g->count < count && g->count < g->bucket->most_items) {
        space -= g->bucket->unit_offset;
        if (g->length + g->items[g->count].length > space) break;
        g->length += g->items[g->count++].length;
    }
}

static void run_items_on_cpu(mdot_context *context, const mdot_abi_entry *entry, const mdot_item *items, size_t count)
{
    group g = {.context = context, .entry = entry, .bucket = rt_ragged_bucket(context->predictor->table, entry)};
    if (g.bucket != NULL) g.code = rt_code_of(context, g.bucket);
    for (size_t first = 0; first < count; first += g.count) {
        g.items = &items[first];
        g.count = 1;
        if (g.bucket != NULL) take_items(&g, count - first);
        if (g.count > 1)
            run_group(&g);
        else
            rt_run_on_cpu(context, entry, g.items[0].length, &(rt_item){g.items[0].inputs, g.items[0].outputs}, 1);
    }
}

/* The smallest item length greater than `above`; INT64_MAX if there is none. */
static int64_t next_length(const mdot_item *items, size_t count, int64_t above)
{
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (items[i].length > above && items[i].length < shortest) shortest = items[i].length;
    return shortest;
}

/* Runs the items with equal length together, AT_ONCE at a time, because a device takes items with one length. */
static void run_by_length(mdot_context *context, const mdot_abi_entry *entry, const mdot_item *items, size_t count)
{
    enum { AT_ONCE = 128 };
    rt_item equal[AT_ONCE];
    for (int64_t length = next_length(items, count, -1); length < INT64_MAX;
         length = next_length(items, count, length)) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            if (items[i].length == length) equal[found++] = (rt_item){items[i].inputs, items[i].outputs};
            if (found < AT_ONCE && (i + 1 < count || found == 0)) continue;
            rt_run_many(context, entry, length, equal, found);
            found = 0;
        }
    }
}

/* If a device fails half-way, the CPU recomputes all items, so that the answers are consistent. */
static void run_items(mdot_context *context, const mdot_abi_entry *entry, const mdot_item *items, size_t count)
{
    if (context->device != NULL && !rt_fell_back(context)) {
        run_by_length(context, entry, items, count);
        if (!rt_fell_back(context)) return;
    }
    run_items_on_cpu(context, entry, items, count);
}

static mdot_status check_item(const mdot_abi_table *table, const mdot_abi_entry *entry, const mdot_item *items,
                              size_t number, mdot_error *err)
{
    const mdot_item *item = &items[number];
    if (item->inputs == NULL || item->outputs == NULL)
        return BS_INVALID(err, "item %zu: inputs or outputs is NULL", number);
    mdot_error reason;
    mdot_status status = rt_check_length(table, entry, item->length, &reason);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "item %zu: %s", number, reason.message);
}

static mdot_status run_many(mdot_context *context, size_t entry, const mdot_item *items, size_t count, mdot_error *err)
{
    const mdot_abi_table *table = context->predictor->table;
    BS_TRY(rt_check_entry(table, entry, err));
    for (size_t i = 0; i < count; i++) BS_TRY(check_item(table, rt_entry(table, entry), items, i, err));
    run_items(context, rt_entry(table, entry), items, count);
    return MDOT_OK;
}

mdot_status mdot_run_many(mdot_context *context, size_t entry, const mdot_item *items, size_t count, mdot_error *err)
{
    if (context == NULL || (items == NULL && count > 0))
        return BS_INVALID(err, "mdot_run_many: context or items is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = run_many(context, entry, items, count, err);
    rt_handle_leave(context);
    return status;
}
