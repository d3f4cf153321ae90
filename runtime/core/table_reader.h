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
static inline const mdot_abi_image *rt_image(const mdot_abi_table *table, size_t image)
{
    return (const mdot_abi_image *)((const char *)table + table->images_at) + image;
}

/* Defines `const element *name(table, of)`, which returns the list whose offset is a field of `of`. */
#define RT_LIST(name, element, owner, field)                                                                           \
    static inline const element *name(const mdot_abi_table *table, const owner *of)                                    \
    {                                                                                                                  \
        return (const element *)((const char *)table + of->field);                                                     \
    }
/* clang-format off */
RT_LIST(rt_inputs,         mdot_abi_tensor,         mdot_abi_entry,  inputs_at)
RT_LIST(rt_outputs,        mdot_abi_tensor,         mdot_abi_entry,  outputs_at)
RT_LIST(rt_buckets,        mdot_abi_bucket,         mdot_abi_entry,  buckets_at)
RT_LIST(rt_defaults,       float,                   mdot_abi_tensor, defaults_at)
RT_LIST(rt_kernels,        mdot_abi_kernel,         mdot_abi_bucket, kernels_at)
RT_LIST(rt_kernel_flops,   double,                  mdot_abi_bucket, kernel_flops_at)
/* The code of a bucket in an image. These lists are indexed by the bucket's number. */
RT_LIST(rt_cpu_functions,  mdot_abi_cpu_function,   mdot_abi_image,  kernels_at)
RT_LIST(rt_cuda_kernels,   mdot_abi_cuda_kernel,    mdot_abi_image,  kernels_at)
RT_LIST(rt_cuda_resources, mdot_abi_cuda_resources, mdot_abi_image,  resources_at)
/* clang-format on */
#undef RT_LIST

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
