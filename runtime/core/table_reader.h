/* table_reader.h — reads an artefact's table (mdot_abi.h) in place: converts an index or an offset to a pointer.
 *
 * These functions check no bounds, because table_check.c has checked every offset and count when the artefact was
 * opened.
 */
#pragma once

#include "mdot/mdot_abi.h"

static inline const char *rt_string(const mdot_abi_table *table, uint32_t offset)
{
    return offset == 0 ? "" : (const char *)table + offset;
}
static inline const mdot_abi_entry *rt_entry(const mdot_abi_table *table, size_t entry)
{
    return (const mdot_abi_entry *)((const char *)table + table->entries_at) + entry;
}
static inline const mdot_abi_tensor *rt_inputs(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_tensor *)((const char *)table + entry->inputs_at);
}
static inline const mdot_abi_tensor *rt_outputs(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_tensor *)((const char *)table + entry->outputs_at);
}
static inline const float *rt_defaults(const mdot_abi_table *table, const mdot_abi_tensor *tensor)
{
    return (const float *)((const char *)table + tensor->defaults_at);
}
static inline const mdot_abi_bucket *rt_buckets(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_bucket *)((const char *)table + entry->buckets_at);
}
static inline const mdot_abi_kernel *rt_kernels(const mdot_abi_table *table, const mdot_abi_bucket *bucket)
{
    return (const mdot_abi_kernel *)((const char *)table + bucket->kernels_at);
}
static inline const double *rt_kernel_flops(const mdot_abi_table *table, const mdot_abi_bucket *bucket)
{
    return (const double *)((const char *)table + bucket->kernel_flops_at);
}
static inline const mdot_abi_image *rt_image(const mdot_abi_table *table, size_t image)
{
    return (const mdot_abi_image *)((const char *)table + table->images_at) + image;
}

/* The code of a bucket in an image. These lists are indexed by the bucket's number. */
static inline const mdot_abi_cpu_function *rt_cpu_functions(const mdot_abi_table *table, const mdot_abi_image *image)
{
    return (const mdot_abi_cpu_function *)((const char *)table + image->kernels_at);
}
static inline const mdot_abi_cuda_kernel *rt_cuda_kernels(const mdot_abi_table *table, const mdot_abi_image *image)
{
    return (const mdot_abi_cuda_kernel *)((const char *)table + image->kernels_at);
}
static inline const mdot_abi_cuda_resources *rt_cuda_resources(const mdot_abi_table *table, const mdot_abi_image *image)
{
    return (const mdot_abi_cuda_resources *)((const char *)table + image->resources_at);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static inline bool rt_has_length(const mdot_abi_dim *dim) { return dim->scale != 0 || dim->times != 0; }
/* The checks at open exclude overflow for lengths up to the largest bucket's. */
static inline int64_t rt_dim_at(const mdot_abi_dim *dim, int64_t length)
{
    int64_t extent = dim->scale * length + dim->offset;
    return dim->times == 0 ? extent : extent + dim->times * ((dim->step * length + dim->start) / dim->divisor);
}
/* The greatest extent in a range of lengths, within the checks at open (table_check.c). */
int64_t rt_dim_most(const mdot_abi_dim *dim, int64_t least_length, int64_t max_length);
/* The first fixed dimension, because rows precede columns and a block of evaluated configurations follows them. 0 if
 * every dimension depends on the length. */
static inline int64_t rt_column_count(const mdot_abi_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!rt_has_length(&tensor->dim[i])) return tensor->dim[i].offset;
    return 0;
}

/* Number of elements. The checks at open exclude overflow for lengths up to the largest bucket's. */
static inline uint64_t rt_element_count(const mdot_abi_tensor *tensor, int64_t length)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) count *= (uint64_t)rt_dim_at(&tensor->dim[i], length);
    return count;
}

static inline uint64_t rt_tensor_bytes(const mdot_abi_tensor *tensor, int64_t length)
{
    return rt_element_count(tensor, length) * mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
}
