/* ragged_batch.h — items of an entry that run together. */
#ifndef RT_RAGGED_BATCH_H
#define RT_RAGGED_BATCH_H

#include "runtime/core/core.h"

typedef struct rt_ragged_batch {
    unsigned char *tensors; /* inputs and outputs of all items, concatenated per tensor; NULL if no entry runs items
                             * together */
    void **outputs;         /* pointers of each item, in the entry's order */
} rt_ragged_batch;

/* The bucket whose code runs an entry's items together. One bucket serves all of them, because kernels are the same
 * for all lengths. NULL if items run separately. */
const mdot_abi_bucket *rt_ragged_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry);
/* Maximum number of items that run together; 1 if they run separately. */
uint32_t rt_ragged_batch_rows(const mdot_abi_table *table, const mdot_abi_entry *entry);

/* Maximum bytes of a tensor of all items, and of several such tensors. Each tensor is aligned to MDOT_ABI_ALIGNMENT. */
size_t rt_tensor_capacity_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensor);
size_t rt_tensors_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensors, uint32_t count);

/* Allocates memory for the items of any entry. Returns OUT_OF_MEMORY on failure. */
mdot_status rt_ragged_batch_create(const rt_allocator *allocator, const mdot_abi_table *table,
                                   rt_ragged_batch *out_batch, mdot_error *err);
void rt_ragged_batch_destroy(const rt_allocator *allocator, rt_ragged_batch *batch);

#endif
