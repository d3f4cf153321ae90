/* run.h — runs an entry. */
#ifndef RT_RUN_H
#define RT_RUN_H

#include "runtime/core/core.h"
#include "runtime/core/workers.h"

/* The CPU code of a bucket, and an ordinary call of it, whose inputs and outputs the caller fills in. */
rt_code rt_code_of(const mdot_context *context, const mdot_abi_bucket *bucket);
mdot_abi_call rt_call_of(const mdot_context *context, const mdot_abi_bucket *bucket, int64_t length);

/* Return OUT_OF_RANGE with a message that gives the valid range. */
mdot_status rt_check_entry(const mdot_abi_table *table, size_t entry, mdot_error *err);
mdot_status rt_check_length(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, mdot_error *err);

/* rt_run_many on the CPU, regardless of the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);

#endif
