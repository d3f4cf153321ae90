/* ragged_batch.c — selects the bucket that runs an entry's items together, and allocates a context's memory for the
 * tensors. */
#include "runtime/core/objects.h"

/* Number of rows from which further reuse of weights gains nothing. */
enum { ENOUGH_ROWS = 128 };

/* The bucket whose code runs an entry's items together. One bucket serves all groups, because kernels are the same
 * for all lengths. Returns NULL if items run separately. */
const mdot_abi_bucket *rt_ragged_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    const mdot_abi_bucket *buckets = rt_buckets(table, entry), *found = NULL;
    for (uint32_t b = 0; b < entry->bucket_count; b++) {
        bool is_larger_than_needed = found != NULL && buckets[b].max_length > ENOUGH_ROWS;
        if (buckets[b].most_items > 1 && !is_larger_than_needed) found = &buckets[b];
    }
    return found;
}

uint32_t rt_ragged_batch_rows(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    const mdot_abi_bucket *bucket = rt_ragged_bucket(table, entry);
    return bucket != NULL ? bucket->most_items : 1;
}

static bool has_length(const mdot_abi_tensor *tensor)
{
    for (uint32_t d = 0; d < tensor->rank; d++)
        if (rt_has_length(&tensor->dim[d])) return true;
    return false;
}

/* Most bytes in a tensor of all items. */
size_t rt_tensor_capacity_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensor)
{
    size_t bytes = (size_t)rt_tensor_bytes(tensor, bucket->max_length);
    if (!has_length(tensor)) bytes *= bucket->most_items;
    return (bytes + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
}

size_t rt_tensors_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensors, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) bytes += rt_tensor_capacity_bytes(bucket, &tensors[i]);
    return bytes;
}

mdot_status rt_ragged_batch_create(const rt_allocator *allocator, const mdot_abi_table *table,
                                   rt_ragged_batch *out_batch, mdot_error *err)
{
    size_t most_bytes = 0, most_outputs = 0;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        const mdot_abi_bucket *bucket = rt_ragged_bucket(table, entry);
        if (bucket == NULL) continue;
        size_t bytes = rt_tensors_bytes(bucket, rt_inputs(table, entry), entry->input_count) +
                       rt_tensors_bytes(bucket, rt_outputs(table, entry), entry->output_count);
        size_t outputs = (size_t)bucket->most_items * entry->output_count;
        if (bytes > most_bytes) most_bytes = bytes;
        if (outputs > most_outputs) most_outputs = outputs;
    }
    if (most_outputs == 0) return MDOT_OK;
    unsigned char *memory = rt_alloc(allocator, most_bytes + most_outputs * sizeof(void *));
    if (memory == NULL) return BS_OUT_OF_MEMORY(err, "%zu bytes of items' tensors", most_bytes);
    *out_batch = (rt_ragged_batch){memory, (void **)(void *)(memory + most_bytes)};
    return MDOT_OK;
}

void rt_ragged_batch_destroy(const rt_allocator *allocator, rt_ragged_batch *batch)
{
    rt_free(allocator, batch->tensors);
}
