/* mdot_abi.h — the contract between the compiler, which writes an artefact (predictor.mdot), and the runtime.
 *
 * What an artefact holds for one kind of processor is an image: target, arithmetic, weights in the layout that its
 * kernels want, code. There is at least one for CPUs, all of them of the ELF file's machine.
 *
 * An artefact is an ELF shared object that imports no symbol and needs no dynamic relocation. It exports
 *
 *   mdot_table         section .mdot.table         what this file describes: an mdot_abi_table and all it points to
 *   mdot_code          section .mdot.code          int64_t[code_count]: each entry function's address minus mdot_code's
 *   mdot_weights       section .mdot.weights       weights of CPU images, 64-byte aligned, read-only
 *   mdot_cubins        section .mdot.cubins        code of CUDA images, an ELF file (cubin) each
 *   mdot_cuda_weights  section .mdot.cuda_weights  weights of CUDA images
 *
 * of which the last two are there only in an artefact with CUDA images, 256-byte aligned and read-only. Images whose
 * weights agree have them in common, as a whole or in part.
 *
 * The table holds no pointers. Every `*_at` field is a byte offset from the start of the table; strings end in NUL, and
 * offset 0 stands for the empty string. Integers are little-endian. A reader checks, in this order: ELF header and
 * section bounds, magic, abi_version, file_bytes, checksum, and then every offset and count against table_bytes or
 * the section that it points into.
 *
 * The checksum covers the whole file, the table's `checksum` field taken as zero. It finds damage, not malice: an
 * artefact is native code, so open only what you trust.
 */
#ifndef MDOT_ABI_H
#define MDOT_ABI_H

#include "mdot_base.h"

#include <assert.h>
#include <string.h>

#define MDOT_ABI_MAGIC "MDOTART" /* eight bytes with the NUL */
enum { MDOT_ABI_VERSION = 8, MDOT_ABI_ALIGNMENT = 64, MDOT_ABI_MAX_IMAGES = 64 };
enum { MDOT_ABI_CUDA_ALIGNMENT = 256, MDOT_ABI_CUDA_MAX_TENSORS = 16 };

#define MDOT_ABI_SYMBOL_TABLE "mdot_table"
#define MDOT_ABI_SYMBOL_CODE "mdot_code"
#define MDOT_ABI_SYMBOL_WEIGHTS "mdot_weights"
#define MDOT_ABI_SYMBOL_CUBINS "mdot_cubins"
#define MDOT_ABI_SYMBOL_CUDA_WEIGHTS "mdot_cuda_weights"
#define MDOT_ABI_SECTION_TABLE ".mdot.table"
#define MDOT_ABI_SECTION_CODE ".mdot.code"
#define MDOT_ABI_SECTION_WEIGHTS ".mdot.weights"
#define MDOT_ABI_SECTION_CUBINS ".mdot.cubins"
#define MDOT_ABI_SECTION_CUDA_WEIGHTS ".mdot.cuda_weights"

/* What the CPU images of an artefact can be made for, lesser first within a machine; values are stored in artefacts:
 * append only. name, value, text. The first are the levels of the x86-64 psABI; the next adds AVX512_BF16, products of
 * pairs of bfloat16 (vdpbf16ps), and the last AMX_BF16, products of tiles. */
#define MDOT_CPU_ISA_MAP(X)                                                                                            \
    X(X86_64_V3, 1, "x86-64-v3")                                                                                       \
    X(X86_64_V4, 2, "x86-64-v4")                                                                                       \
    X(X86_64_BF16, 3, "x86-64-bf16")                                                                                   \
    X(X86_64_AMX, 4, "x86-64-amx")

typedef enum mdot_cpu_isa {
    MDOT_CPU_NONE = 0,
#define MDOT_CPU_ISA_ENUM(name, value, text) MDOT_CPU_##name = value,
    MDOT_CPU_ISA_MAP(MDOT_CPU_ISA_ENUM)
#undef MDOT_CPU_ISA_ENUM
} mdot_cpu_isa;

/* scale * length + offset, where length is the run-time extent of the bucket's dimension. */
typedef struct mdot_abi_dim {
    int64_t scale, offset;
} mdot_abi_dim;

typedef struct mdot_abi_tensor { /* an input or an output; dense, row-major */
    uint32_t name_at;
    uint32_t dtype; /* mdot_dtype */
    uint32_t rank;
    uint32_t index_count; /* of an input of integers that picks rows of tables: how many rows those have; 0: not said */
    mdot_abi_dim dim[MDOT_MAX_RANK];
    uint32_t defaults_at,
        default_count;   /* float[], of an f32 input of jobs: what its last columns are to a runtime that
                                            has none of them (mdot.h, "Predictions") */
    uint32_t columns_at; /* of the input "configuration": which numbers its columns are, names separated
                                            by commas; 0: the first so many of MDOT_CONFIGURATION_MAP */
    uint32_t reserved;
} mdot_abi_tensor;

/* What one bucket runs on a CPU, in order: for people and tools, and for those who split calls. Buckets whose kernels
 * are the same have one list. */
typedef struct mdot_abi_kernel {
    uint32_t name_at;    /* the symbol's name without its image's suffix */
    uint32_t kind_at;    /* "linear", "attention", "norm", "nest", "sequential" */
    uint32_t is_split;   /* 1: shares of it are work of their own; 0: one call does all (mdot_abi_call) */
    uint32_t is_rowwise; /* 1: one call does the rows of several items (mdot_abi_call) … */
    int64_t unit_offset; /* … of each of which there are length + unit_offset, or a multiple of it */
} mdot_abi_kernel;

typedef struct mdot_abi_bucket {
    int64_t max_length;                /* 0 in an entry without a length */
    double flops;                      /* of one call at full length */
    uint32_t kernels_at, kernel_count; /* mdot_abi_kernel[] */
    uint32_t
        number; /* among the buckets of all entries, in order: what it runs is element `number` of an image's lists */
    uint32_t kernel_flops_at; /* double[kernel_count], of each kernel at full length */
    uint32_t most_items;      /* that are taken together; 0: none are */
    uint32_t reserved;
    int64_t unit_offset; /* the greatest of all extents */
} mdot_abi_bucket;

typedef struct mdot_abi_entry {
    uint32_t name_at;
    uint32_t inputs_at, input_count;   /* mdot_abi_tensor[] */
    uint32_t outputs_at, output_count; /* mdot_abi_tensor[] */
    uint32_t buckets_at, bucket_count; /* mdot_abi_bucket[], ascending in max_length; at least one */
    uint32_t least_length;             /* 0: every dimension is a number and there is one bucket */
    uint64_t schema_hash;              /* checksum of the bytes of the inputs' and outputs' tensors and names */
} mdot_abi_entry;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef enum mdot_image_kind { MDOT_IMAGE_CPU = 1, MDOT_IMAGE_CUDA = 2 } mdot_image_kind;

/* Which image runs: of those that the processor can run, one of the last target, since targets ascend from the least to
 * the most able. Images of one target differ in their arithmetic and stand in the order that the compiler was told: the
 * first is the predictor's own choice, another runs when it is asked for by name (mdot_open_options.compute).
 *
 * A CPU image's code is its functions, all in the ELF file's text; a CUDA image's is a cubin. A cubin runs on devices
 * of compute capability number / 10 . number % 10 and higher minor numbers of the same major one; accelerated code
 * (sm_90a) on exactly its own. There is no PTX: newer majors need a compilation. */
typedef struct mdot_abi_image {
    uint32_t kind;                     /* mdot_image_kind */
    uint32_t number;                   /* CPU: mdot_cpu_isa. CUDA: 90 for sm_90 */
    uint32_t variant;                  /* CUDA: 1 for accelerated code, sm_90a; else 0 */
    uint32_t target_at;                /* the two as text: "x86-64-v4", "sm_90a" */
    uint32_t compute_at;               /* arithmetic of the matrix kernels: "fp32", "bf16", "fp16" */
    uint32_t kernels_at, kernel_count; /* what each bucket runs, by its number: mdot_abi_cpu_function[] or
                                          mdot_abi_cuda_kernel[] */
    uint32_t resources_at;             /* CUDA: mdot_abi_cuda_resources[kernel_count]; else 0 */
    uint64_t code_offset, code_bytes;  /* CUDA: in .mdot.cubins, a multiple of its alignment. CPU: the size alone, which
                                          is for people, of what is the image's own */
    uint64_t weights_offset, weights_bytes; /* where all its weights lie in the section of its kind, a multiple of that
                                               section's alignment; call.weights points there */
} mdot_abi_image;

/* What one bucket runs on a CPU. */
typedef struct mdot_abi_cpu_function {
    uint32_t code; /* mdot_code[code] is an mdot_abi_function */
    uint32_t reserved;
    uint64_t scratch_bytes; /* of 64-byte aligned memory that a call may overwrite */
    uint64_t worker_bytes;  /* how much more each worker but the first takes; a multiple of 64 */
} mdot_abi_cpu_function;

/* What one bucket runs on a GPU: one kernel, launched cooperatively with grid (blocks, items, 1), block (threads, 1, 1)
 * and dynamic_shared_bytes. Each item (blockIdx.y) is a prediction of its own; its blocks share its work among them, so
 * any number of blocks is right. All blocks must be resident together, since they wait for one another. */
typedef struct mdot_abi_cuda_kernel {
    uint32_t name_at;       /* the function in the image */
    uint32_t threads;       /* of a block */
    uint32_t tile_rows;     /* units of length that a block takes at a time: more blocks than length / tile_rows,
                               rounded up, are idle; 0 in an entry without a length, where one block suffices */
    uint32_t grid_barriers; /* how often the blocks of an item wait for one another in a call */
    uint32_t dynamic_shared_bytes;
    uint32_t inline_input_bytes; /* room for inputs behind mdot_abi_cuda_call in the parameter, 0 for none */
    uint64_t scratch_bytes;      /* of an item, at full length */
} mdot_abi_cuda_kernel;

/* What the cubin says of one kernel: for people, tools and tests; the driver knows it by itself. */
typedef struct mdot_abi_cuda_resources {
    uint32_t registers;           /* of a thread */
    uint32_t static_shared_bytes; /* of a block */
    uint32_t local_bytes;         /* stack of a thread, spilled registers included */
    uint32_t spill_bytes;         /* of registers stored to and loaded from the stack, counted in the code */
    uint32_t tensor_instructions; /* in the code, not executed */
    uint32_t barriers;            /* of a block in hardware, of 16 */
    uint32_t code_bytes;
    uint32_t reserved;
} mdot_abi_cuda_resources;

typedef struct mdot_abi_table {
    char magic[8];
    uint32_t abi_version;
    uint32_t table_bytes;
    uint64_t file_bytes;
    uint64_t checksum;
    uint64_t weights_bytes;           /* of all CPU images together */
    uint32_t name_at;                 /* the predictor's name */
    uint32_t compiler_at;             /* "mdot 0.3.0, LLVM 19.1.7"; with CUDA images ", NVRTC 13.0" behind it */
    uint32_t entries_at, entry_count; /* mdot_abi_entry[] */
    uint32_t images_at, image_count;  /* mdot_abi_image[], ascending in kind, number, variant, each of one target in
                                         another arithmetic; the first is for a CPU */
    uint32_t bucket_count;            /* of all entries */
    uint32_t code_count;              /* int64_t in mdot_code */
} mdot_abi_table;

/* Items, as far as the sizes of their tensors need it, which are products of at most two lengths. */
typedef struct mdot_abi_items {
    int64_t count, length, square; /* of the lengths and of their squares the sums */
} mdot_abi_items;

/* What an entry function is called with. Inputs and outputs are in the entry's order, aligned to their element size;
 * weights (the image's) and scratch are 64-byte aligned. The function is re-entrant, allocates nothing and makes no
 * system call.
 *
 * A call runs kernels kernel_begin … kernel_end - 1 of the bucket, and of each the share share_begin … share_end of its
 * units (rows, heads, points, in groups that suit the code), in parts of 2^32. The ordinary call runs everything: all
 * kernels, share 0 … 2^32, worker 0.
 *
 * Threads are the caller's matter. It may run one kernel at a time as several calls side by side, whose shares together
 * are 0 … 2^32, each once and none empty, and each with another worker's number below the workers that scratch has room
 * for: scratch_bytes + (workers - 1) × worker_bytes. Every call of a kernel has ended before one of a later kernel
 * begins. Results are the same, bit for bit, whatever the shares. Where a kernel is not worth splitting
 * (mdot_abi_kernel.is_split) the call whose share begins at 0 does all of it and the others nothing; kernels of that
 * kind that follow one another are one step and run together, so that a call begins and ends where a step does. Where
 * items are taken together every kernel is a step.
 *
 * Items of one entry, each a call at a length of its own, are taken together in a bucket of which most_items is not 0:
 * up to so many, whose lengths, and unit_offset for each but the first, add up to no more than max_length. A kernel
 * after the other is then run for all of them, on one scratch memory. One that is not rowwise is called for each item,
 * with that item's length, inputs and outputs, and in `before` what the items before it are. A rowwise one is called
 * once, or in shares, as one item: its length is the sum of the items' and the kernel's unit_offset for each but the
 * first, and its inputs and outputs are the items' tensors, one behind the other without a gap. Outputs are so in all
 * calls. Results are those of each item's own call; only how a vector's last elements round may differ. */
typedef struct mdot_abi_call {
    const void *const *inputs;
    void *const *outputs;
    const void *weights;
    void *scratch;
    int64_t length; /* 1 … max_length; 0 where the entry has no length */
    int64_t kernel_begin, kernel_end;
    int64_t share_begin, share_end;
    int64_t worker;
    mdot_abi_items before; /* zeros in an ordinary call */
} mdot_abi_call;

#define MDOT_ABI_WHOLE_SLICE (INT64_C(1) << 32)

typedef void (*mdot_abi_function)(const mdot_abi_call *call);

/* What a CUDA kernel is launched with: its only parameter is, by value and 16-byte aligned,
 *
 *   struct { mdot_abi_cuda_call call; unsigned char input[inline_input_bytes]; }
 *
 * Addresses are the device's. Items are predictions of one length in one launch, item i's scratch, inputs and outputs
 * standing at i times the stride. Inputs are packed: each dense at the run-time length, at its own 16-byte aligned
 * offset. `output`, `done` and, unless it is inline, `input` may be host memory that is mapped for the device.
 *
 * When an item is finished, `ticket` is written to done[item] with a release store of system scope: a host that reads
 * the ticket there with acquire may read the item's outputs. Every launch on the same memory has another ticket. The
 * counters at `barrier` only grow, each by grid_barriers × blocks in a launch, modulo 2^32; what they are before it is
 * barrier_base.
 */
typedef struct mdot_abi_cuda_call {
    uint64_t weights; /* the image's, 256-byte aligned */
    uint64_t scratch; /* scratch_bytes an item, 256-byte aligned; not initialised */
    uint64_t input;   /* not read where inline_input is 1 */
    uint64_t output;
    uint64_t barrier;        /* uint32_t[items] */
    uint64_t done;           /* uint32_t[items] */
    uint64_t scratch_stride; /* bytes, as the next two; multiples of 16 */
    uint64_t input_stride;
    uint64_t output_stride;
    int64_t length;        /* of every item of the launch; 0 where the entry has no length */
    uint32_t barrier_base; /* the counters before this launch */
    uint32_t ticket;
    uint32_t inline_input; /* 1: the inputs of the only item follow this structure in the parameter */
    uint32_t reserved;
    uint32_t input_at[MDOT_ABI_CUDA_MAX_TENSORS]; /* each input's offset in its item's block, in the entry's order */
    uint32_t output_at[MDOT_ABI_CUDA_MAX_TENSORS];
} mdot_abi_cuda_call;

/* Kernels are compiled against copies of these layouts, so a change is a new abi_version; so is a change of what a
 * field means or of how a function may be called.
 *
 *   5  CPU targets are images as GPU architectures are; a call runs some kernels and a share of their work
 *   6  kernels that are not split are one step, within which no call begins or ends; what each kernel of a bucket
 *      computes stands in a list of its own (kernel_flops_at)
 *   7  an input may name its columns (columns_at)
 *   8  several items are taken together by kernels that are rowwise
 */
static_assert(sizeof(mdot_abi_kernel) == 24, "layout of mdot_abi_kernel");
static_assert(sizeof(mdot_abi_bucket) == 48, "layout of mdot_abi_bucket");
static_assert(sizeof(mdot_abi_cuda_kernel) == 32, "layout of mdot_abi_cuda_kernel");
static_assert(sizeof(mdot_abi_cuda_resources) == 32, "layout of mdot_abi_cuda_resources");
static_assert(sizeof(mdot_abi_call) == 104, "layout of mdot_abi_call");
static_assert(sizeof(mdot_abi_image) == 64, "layout of mdot_abi_image");
static_assert(sizeof(mdot_abi_table) % sizeof(uint64_t) == 0, "arrays behind the table are aligned");
static_assert(sizeof(mdot_abi_cuda_call) == 224, "layout of mdot_abi_cuda_call");
static_assert(offsetof(mdot_abi_cuda_call, length) == 72, "layout of mdot_abi_cuda_call");
static_assert(offsetof(mdot_abi_cuda_call, input_at) == 96, "layout of mdot_abi_cuda_call");
static_assert(sizeof(mdot_abi_cuda_call) % 16 == 0, "inline inputs are 16-byte aligned");

/* 32 bytes into the four lanes: every step can be undone, so a changed word always changes its lane. */
static inline void mdot_abi_checksum_block(uint64_t lane[4], const uint64_t word[4])
{
    for (int i = 0; i < 4; i++) {
        uint64_t x = (lane[i] ^ word[i]) * UINT64_C(0x9E3779B97F4A7C15);
        lane[i] = x << 29 | x >> 35;
    }
}

/* 64-bit checksum of `bytes` bytes, chained through `seed`: 0 at the start, then the checksum of the piece before. Four
 * interleaved multiply-rotate lanes over 64-bit words, a zero-padded tail, the length mixed in. The multiplier is 2^64
 * divided by the golden ratio. Not cryptographic. */
static inline uint64_t mdot_abi_checksum(const void *data, size_t bytes, uint64_t seed)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const unsigned char *p = (const unsigned char *)data;
    uint64_t lane[4] = {seed, seed ^ golden, seed + golden, ~seed};
    uint64_t word[4];
    size_t left = bytes;
    for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(word, p, sizeof word);
        mdot_abi_checksum_block(lane, word);
    }
    if (left > 0) {
        memset(word, 0, sizeof word);
        memcpy(word, p, left);
        mdot_abi_checksum_block(lane, word);
    }
    uint64_t sum = (uint64_t)bytes;
    for (int i = 0; i < 4; i++) {
        sum = (sum ^ lane[i]) * golden;
        sum ^= sum >> 32;
    }
    return sum;
}

/* The checksum of an artefact whose table starts at byte table_offset: what lies before the table, the table as far as
 * its `checksum` field with that field as zero, and the rest, chained. table_offset plus the table's size is within the
 * file. */
static inline uint64_t mdot_abi_file_checksum(const void *file, size_t file_bytes, size_t table_offset)
{
    const unsigned char *bytes = (const unsigned char *)file;
    unsigned char head[offsetof(mdot_abi_table, checksum) + sizeof(uint64_t)];
    memcpy(head, bytes + table_offset, sizeof head);
    memset(head + offsetof(mdot_abi_table, checksum), 0, sizeof(uint64_t));
    size_t rest_offset = table_offset + sizeof head;
    uint64_t sum = mdot_abi_checksum(bytes, table_offset, 0);
    sum = mdot_abi_checksum(head, sizeof head, sum);
    return mdot_abi_checksum(bytes + rest_offset, file_bytes - rest_offset, sum);
}

#endif
