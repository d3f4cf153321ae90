/* subject.h — an artefact on the GPU and on the CPU, and made-up tensors for it.
 *
 * Runs of many items are not in libmdot's public interface, nor is a kernel's launch: what measures them reaches into
 * the runtime, which is linked statically.
 */
#ifndef GPU_SUBJECT_H
#define GPU_SUBJECT_H

#include "runtime/core/objects.h"
#include "runtime/core/run.h"

typedef struct subject {
    mdot_predictor *gpu, *cpu;
    mdot_context *gpu_context, *cpu_context;
    mdot_predictor_info info; /* of the one on the GPU */
    const mdot_abi_table *table;
} subject;

/* MDOT_DEVICE where there is no GPU or it fails. Zeroed first; subject_close takes it in any state. */
mdot_status subject_open(subject *s, const char *path, mdot_error *err);
void subject_close(subject *s);

/* MDOT_OK while the GPU has answered everything. */
mdot_status subject_check(const subject *s, mdot_error *err);

/* Inputs and outputs of `count` items of one length. */
typedef struct batch {
    const mdot_abi_table *table;
    const mdot_abi_entry *entry;
    int64_t length;
    size_t count;
    rt_item *items;
    size_t output_bytes; /* of all items */
    unsigned char *outputs, *inputs;
    void **pointers;
} batch;

/* Floats from 0 on, small indices, masks with holes; the same for the same seed. Items differ in how large their floats
 * and how dense their masks are: were they alike, means over long sequences would be too. False: no memory. */
bool batch_make(batch *b, const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, size_t count,
                uint64_t seed);
void batch_free(batch *b);
/* Fills the outputs with NaN and other values that no run leaves behind. */
void batch_poison(batch *b);

/* What an output's differences are measured by: its greatest float in any item, and how far apart the items' floats
 * are. 1 where it has none. False where one is not finite. */
typedef struct scales {
    double greatest[MDOT_ABI_CUDA_MAX_TENSORS], spread[MDOT_ABI_CUDA_MAX_TENSORS];
} scales;
bool batch_scales(const batch *b, scales *out_scales);

/* The greatest difference of any output of two batches, as shares of its scales; infinite where something is not
 * finite, or where integers or booleans differ. */
typedef struct difference {
    double of_greatest, of_spread;
} difference;
difference batch_difference(const batch *got, const batch *wanted, const scales *scale);

#endif
