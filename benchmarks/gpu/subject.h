/* subject.h — an artefact on the GPU and on the CPU, with random tensors.
 *
 * libmdot's public interface has no launches with many items or with single kernels. Therefore the measurements use
 * internals of the runtime, linked statically. */
#pragma once

#include "runtime/core/objects.h"
#include "runtime/core/run.h"

typedef struct subject {
    mdot_predictor *gpu, *cpu;
    mdot_context *gpu_context, *cpu_context;
    mdot_predictor_info info; /* info of the predictor on the GPU */
    const mdot_abi_table *table;
} subject;

/* MDOT_DEVICE if the GPU is absent or fails. Zeroes the subject first; subject_close accepts it in any state. */
mdot_status subject_open(subject *s, const char *path, mdot_error *err);
void subject_close(subject *s);

/* Returns MDOT_OK while the GPU has answered all calls. */
mdot_status subject_check(const subject *s, mdot_error *err);

/* Inputs and outputs for `count` items with one length. */
typedef struct batch {
    const mdot_abi_table *table;
    const mdot_abi_entry *entry;
    int64_t length;
    size_t count;
    rt_item *items;
    size_t output_bytes; /* of all items together */
    unsigned char *outputs, *inputs;
    void **pointers;
} batch;

/* Makes floats from 0 on, small indices, and masks with holes; equal seeds give equal tensors. Items differ in float
 * magnitude and mask density, because means over long sequences would otherwise be alike. False if memory ran out. */
bool batch_make(batch *b, const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, size_t count,
                uint64_t seed);
void batch_free(batch *b);
