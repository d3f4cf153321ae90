/* run.h — runs an entry, on one thread or on several. */
#pragma once

#include "runtime/core/core.h"

/* ---- workers.c: threads that share a call ------------------------------------------------------------------------ */

enum { RT_MOST_WORKERS = 64 };

/* The workers of one context, including the caller's thread. */
typedef struct rt_workers rt_workers;

/* `options` has at least two threads. */
mdot_status rt_workers_create(const rt_allocator *allocator, const mdot_context_options *options,
                              rt_workers **out_workers, mdot_error *err);
void rt_workers_destroy(const rt_allocator *allocator, rt_workers *workers); /* accepts NULL */

/* True if a call of this length is long enough to be shared. */
bool rt_workers_split(const rt_workers *workers, int64_t length);

/* The end of the step from `begin` on. A split kernel is a step of its own. Consecutive other kernels form one step
 * (mdot_abi_call). */
static inline uint32_t rt_step_end(const mdot_abi_kernel *kernels, uint32_t kernel_count, uint32_t begin)
{
    uint32_t end = begin + 1;
    if (kernels[begin].is_split == 0)
        while (end < kernel_count && kernels[end].is_split == 0) end++;
    return end;
}

/* A bucket's code and kernels. */
typedef struct rt_code {
    mdot_abi_function function;
    const mdot_abi_kernel *kernels;
} rt_code;

/* Runs the kernels in every call, one call after the other. All workers that arrive share the work. The calls' share
 * and worker fields are set here. */
void rt_workers_run(rt_workers *workers, const rt_code *code, const mdot_abi_call *calls, size_t count);

/* The CPU code of a bucket, and an ordinary call of it, whose inputs and outputs the caller fills in. */
rt_code rt_code_of(const mdot_context *context, const mdot_abi_bucket *bucket);
mdot_abi_call rt_call_of(const mdot_context *context, const mdot_abi_bucket *bucket, int64_t length);

/* Return OUT_OF_RANGE with a message that gives the valid range. */
mdot_status rt_check_entry(const mdot_abi_table *table, size_t entry, mdot_error *err);
mdot_status rt_check_length(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, mdot_error *err);

/* rt_run_many on the CPU, regardless of the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);
