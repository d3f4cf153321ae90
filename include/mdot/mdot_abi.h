/* mdot_abi.h — the contract between the compiler, which writes an artefact (predictor.mdot), and the runtime.
 *
 * An image is the part of an artefact for one kind of processor: target, precision, code, and weights in the layout
 * of its kernels. An artefact has at least one CPU image. All CPU images are for the ELF file's machine.
 *
 * An artefact is an ELF shared object that imports no symbol and needs no dynamic relocation. It exports
 *
 *   mdot_table         section .mdot.table         the structs of this file: an mdot_abi_table and all its contents
 *   mdot_code          section .mdot.code          int64_t[code_count]: each entry function's address minus mdot_code's
 *   mdot_weights       section .mdot.weights       weights of CPU images, 64-byte aligned, read-only
 *   mdot_cubins        section .mdot.cubins        code of CUDA images, an ELF file (cubin) each
 *   mdot_cuda_weights  section .mdot.cuda_weights  weights of CUDA images
 *
 * The last two exist only in an artefact with CUDA images; they are 256-byte aligned and read-only. Images share
 * equal weights, as a whole or in part.
 *
 * The table is free of pointers. Every `*_at` field is a byte offset from the start of the table. Strings end in NUL;
 * offset 0 means the empty string. Integers are little-endian. A reader checks in this order: ELF header and section
 * bounds, magic, abi_version, file_bytes, checksum. It then checks every offset and count against table_bytes or the
 * section that it points into.
 *
 * The checksum covers the whole file, with the table's `checksum` field taken as zero. It detects damage only. Note
 * that an artefact is native code, so open only artefacts that you trust.
 */
#ifndef MDOT_ABI_H
#define MDOT_ABI_H

#include "mdot_base.h"

#include <assert.h>
#include <string.h>

#define MDOT_ABI_MAGIC "MDOTART" /* eight bytes with the NUL */
enum {
    MDOT_ABI_VERSION = 9,           /* version of the structs below and of the calling rules; the list is at the end */
    MDOT_ABI_ALIGNMENT = 64,        /* of the table, the code's list, the weights and scratch memory, in bytes */
    MDOT_ABI_MAX_IMAGES = 64,       /* images of an artefact */
    MDOT_ABI_MAX_DIVISOR = 1 << 16, /* largest divisor of a dimension's floor */
    MDOT_ABI_CUDA_ALIGNMENT = 256,  /* of cubins and their weights, in bytes */
    MDOT_ABI_CUDA_MAX_TENSORS = 16  /* inputs of an entry that runs on a GPU, and also its outputs */
};

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

/* CPU ISA levels that an image can target, ascending within a machine. Artefacts store the values: append only.
 * Columns: name, value, text. The first two are levels of the x86-64 psABI. The third adds AVX512_BF16, dot products
 * of bfloat16 pairs (vdpbf16ps), and the fourth adds AMX_BF16, matmuls of tiles. Every AArch64 CPU with Advanced SIMD
 * runs aarch64-neon. aarch64-bf16 adds FEAT_BF16 (Armv8.6-A): bfdot and bfmmla. */
#define MDOT_CPU_ISA_MAP(X)                                                                                            \
    X(X86_64_V3, 1, "x86-64-v3")                                                                                       \
    X(X86_64_V4, 2, "x86-64-v4")                                                                                       \
    X(X86_64_BF16, 3, "x86-64-bf16")                                                                                   \
    X(X86_64_AMX, 4, "x86-64-amx")                                                                                     \
    X(AARCH64_NEON, 5, "aarch64-neon")                                                                                 \
    X(AARCH64_BF16, 6, "aarch64-bf16")

/* A CPU ISA level (MDOT_CPU_ISA_MAP). */
typedef enum mdot_cpu_isa {
    MDOT_CPU_NONE = 0, /* no level */
#define MDOT_CPU_ISA_ENUM(name, value, text) MDOT_CPU_##name = value,
    MDOT_CPU_ISA_MAP(MDOT_CPU_ISA_ENUM)
#undef MDOT_CPU_ISA_ENUM
} mdot_cpu_isa;

/* scale * length + offset + times * floor((step * length + start) / divisor), where length is the run-time extent of
 * the bucket's dimension. Without a floor, the last four are 0. Otherwise times > 0, 0 < step < divisor, 0 <= start <
 * divisor and divisor <= MDOT_ABI_MAX_DIVISOR. Dimensions of inputs have no floor, because they determine the
 * length. */
typedef struct mdot_abi_dim {
    int64_t scale;   /* elements per unit of length; 0: independent of it */
    int64_t offset;  /* elements at length 0, without the floor */
    int32_t times;   /* elements per unit of the floor; 0: the dimension has no floor */
    int32_t step;    /* factor of the length in the floor */
    int32_t start;   /* summand in the floor */
    int32_t divisor; /* divisor of the floor, 2 to MDOT_ABI_MAX_DIVISOR */
} mdot_abi_dim;

typedef struct mdot_abi_tensor {     /* an input or an output; dense, row-major */
    uint32_t name_at;                /* name of the tensor in the model */
    uint32_t dtype;                  /* mdot_dtype */
    uint32_t rank;                   /* number of dimensions, 0 to MDOT_MAX_RANK */
    uint32_t index_count;            /* rows of the tables that an integer input indexes; 0: unknown */
    mdot_abi_dim dim[MDOT_MAX_RANK]; /* extents; all zero from `rank` on */
    uint32_t defaults_at;            /* float[default_count]: for an f32 input of jobs, defaults of its last columns
                                      * for a runtime that lacks them (mdot.h, "Predictions") */
    uint32_t default_count;          /* number of these defaults; 0: none */
    uint32_t columns_at;             /* for the input "configuration": names of its columns, separated by commas; 0: the
                                      * first columns of MDOT_CONFIGURATION_MAP */
    uint32_t assumed_torch;          /* for the input "configuration": version of PyTorch that the predictor assumes if
                                      * the configuration leaves it open, as 100 * major + minor; 0: it states none */
} mdot_abi_tensor;

/* A kernel of a bucket on a CPU; kernels stand in execution order. People and tools read this list, and so does code
 * that splits calls. Buckets with equal kernels share one list. */
typedef struct mdot_abi_kernel {
    uint32_t name_at;    /* name of the symbol less its image's suffix */
    uint32_t kind_at;    /* "linear", "attention", "norm", "nest", "sequential" */
    uint32_t is_split;   /* 1: its work can be divided into slices; 0: one call does all of it (mdot_abi_call) */
    uint32_t is_rowwise; /* 1: one call can process the rows of several items (mdot_abi_call) */
    int64_t unit_offset; /* a row-wise kernel has length + unit_offset rows per item, or a multiple of that */
} mdot_abi_kernel;

/* Code for a range of lengths, up to max_length. A call runs in the first bucket that holds its length. */
typedef struct mdot_abi_bucket {
    int64_t max_length;                /* 0 in an entry that has no length */
    double flops;                      /* of one call at full length */
    uint32_t kernels_at, kernel_count; /* mdot_abi_kernel[] */
    uint32_t number; /* index among the buckets of all entries, in order; element `number` of an image's lists is this
                 * bucket's code */
    uint32_t kernel_flops_at; /* double[kernel_count]: FLOPs of each kernel at full length */
    uint32_t most_items;      /* most items that are computed together; 0: items run separately */
    uint32_t reserved;
    int64_t unit_offset; /* the greatest unit_offset of all kernels and dimensions */
} mdot_abi_bucket;

/* An entry point: a model that callers run by its name. */
typedef struct mdot_abi_entry {
    uint32_t name_at;                  /* name of the entry, for example "predict" */
    uint32_t inputs_at, input_count;   /* mdot_abi_tensor[] */
    uint32_t outputs_at, output_count; /* mdot_abi_tensor[] */
    uint32_t buckets_at, bucket_count; /* mdot_abi_bucket[], ascending in max_length; at least one */
    uint32_t least_length;             /* shortest length of a call; 0: every dimension is a constant and there is one
                                        * bucket */
    uint64_t schema_hash;              /* checksum of the bytes of the inputs' and outputs' tensors and names */
} mdot_abi_entry;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* Kind of processor that an image is for. */
typedef enum mdot_image_kind {
    MDOT_IMAGE_CPU = 1, /* CPUs of the ELF file's machine */
    MDOT_IMAGE_CUDA = 2 /* NVIDIA's GPUs */
} mdot_image_kind;

/* Selection of an image: targets ascend from the least to the most capable, so the runtime selects an image of the
 * last target that the processor supports. Images of one target differ in precision and stand in the order of the
 * compiler's options. The first one is the default; another runs if it is requested by name
 * (mdot_open_options.kernel_precision).
 *
 * The code of a CPU image is its functions, which are all in the ELF file's text. The code of a CUDA image is a
 * cubin. A cubin runs on devices of compute capability number / 10 . number % 10 and on higher minor numbers of the
 * same major one. Accelerated code (sm_90a) runs on exactly its own capability. The artefact omits PTX, so newer
 * majors need a compilation.
 */
typedef struct mdot_abi_image {
    uint32_t kind;                     /* mdot_image_kind */
    uint32_t number;                   /* CPU: mdot_cpu_isa. CUDA: 90 for sm_90 */
    uint32_t variant;                  /* CUDA: 1 for accelerated code, sm_90a; otherwise 0 */
    uint32_t target_at;                /* `number` and `variant` as text: "x86-64-v4", "sm_90a" */
    uint32_t compute_at;               /* precision of the matrix kernels: "fp32", "bf16", "fp16" */
    uint32_t kernels_at, kernel_count; /* code of each bucket, by the bucket's number: mdot_abi_cpu_function[] or
                                        * mdot_abi_cuda_kernel[] */
    uint32_t resources_at;             /* CUDA: mdot_abi_cuda_resources[kernel_count]; otherwise 0 */
    uint64_t code_offset, code_bytes;  /* CUDA: position in .mdot.cubins, a multiple of its alignment. CPU: only the
                                        * size of the image's own code, for information */
    uint64_t weights_offset, weights_bytes; /* the range of its weights in the section of its kind, a multiple of that
                                             * section's alignment; call.weights points there */
} mdot_abi_image;

/* Code of one bucket on a CPU. */
typedef struct mdot_abi_cpu_function {
    uint32_t code; /* mdot_code[code] is an mdot_abi_function */
    uint32_t reserved;
    uint64_t scratch_bytes; /* size of the 64-byte aligned memory that a call may overwrite */
    uint64_t worker_bytes;  /* additional scratch memory of each worker except the first; a multiple of 64 */
} mdot_abi_cpu_function;

/* Code of one bucket on a GPU: one kernel, launched cooperatively with grid (blocks, items, 1), block (threads, 1, 1)
 * and dynamic_shared_bytes. Each item (blockIdx.y) is a separate prediction. Its blocks divide its work among them,
 * so any number of blocks gives the right result. All blocks must be resident together, because they wait for one
 * another. */
typedef struct mdot_abi_cuda_kernel {
    uint32_t name_at;       /* name of the function in the image */
    uint32_t threads;       /* threads per block */
    uint32_t tile_rows;     /* units of length that a block processes at a time. Blocks beyond length / tile_rows,
                             * rounded up, are idle. 0 in an entry that has no length, where one block suffices */
    uint32_t grid_barriers; /* number of times that the blocks of an item wait for one another in a call */
    uint32_t dynamic_shared_bytes; /* dynamic shared memory per block */
    uint32_t inline_input_bytes;   /* size of the space for inputs behind mdot_abi_cuda_call in the parameter; 0 if it
                                  * is absent */
    uint64_t scratch_bytes;        /* per item, at full length */
} mdot_abi_cuda_kernel;

/* Resources of a kernel, read from the cubin for people, tools and tests; the driver obtains them itself. */
typedef struct mdot_abi_cuda_resources {
    uint32_t registers;           /* per thread */
    uint32_t static_shared_bytes; /* per block */
    uint32_t local_bytes;         /* stack per thread, including spilled registers */
    uint32_t spill_bytes;         /* bytes of spilled registers stored to and loaded from the stack, counted in the
                                   * code */
    uint32_t tensor_instructions; /* counted in the code, rather than at run time */
    uint32_t barriers;            /* hardware barriers per block, of 16 */
    uint32_t code_bytes;          /* size of the kernel's instructions */
    uint32_t reserved;
} mdot_abi_cuda_resources;

/* The first struct of the table. Everything else is found from here. */
typedef struct mdot_abi_table {
    char magic[8];                    /* MDOT_ABI_MAGIC */
    uint32_t abi_version;             /* MDOT_ABI_VERSION of the compiler; another one is INCOMPATIBLE */
    uint32_t table_bytes;             /* size of the table with everything that it refers to by offset */
    uint64_t file_bytes;              /* size of the whole file */
    uint64_t checksum;                /* mdot_abi_file_checksum of the file */
    uint64_t weights_bytes;           /* all CPU images together */
    uint32_t name_at;                 /* name of the predictor */
    uint32_t compiler_at;             /* "mdot 0.2.0, LLVM 19.1.7", followed by ", NVRTC 13.0" if there are CUDA
                                       * images */
    uint32_t entries_at, entry_count; /* mdot_abi_entry[] */
    uint32_t images_at, image_count;  /* mdot_abi_image[], ascending in kind, number and variant; images of one target
                                       * differ in precision. The first is for a CPU */
    uint32_t bucket_count;            /* in all entries together */
    uint32_t code_count;              /* number of int64_t in mdot_code */
} mdot_abi_table;

/* Summary of preceding items: enough to compute the sizes of their tensors, which are products of at most two
 * lengths. */
typedef struct mdot_abi_items {
    int64_t count, length, square; /* number of items, sum of their lengths, sum of the squares of their lengths */
} mdot_abi_items;

/* Argument of an entry function. Inputs and outputs are in the entry's order and aligned to their element size.
 * Weights (the image's) and scratch are 64-byte aligned. The function is re-entrant. It works without allocations and
 * system calls.
 *
 * A call runs kernels kernel_begin … kernel_end - 1 of the bucket. Of each kernel it computes the slice share_begin …
 * share_end of the units (rows, heads, points, in groups that suit the code), measured in parts of 2^32. The ordinary
 * call runs everything: all kernels, slice 0 … 2^32, worker 0.
 *
 * Threads belong to the caller. It may run one kernel at a time as several concurrent calls, under these conditions:
 *
 *   - The slices cover 0 … 2^32 exactly once, and each slice is non-empty.
 *   - Each call has a different worker number. Scratch must hold scratch_bytes + (workers - 1) × worker_bytes.
 *   - Every call of a kernel has ended before a call of a later kernel begins.
 *
 * Results are identical bit for bit for any division into slices. If a kernel is too small to split
 * (mdot_abi_kernel.is_split), the call whose slice begins at 0 does all of it and the other calls skip it.
 * Consecutive kernels of that kind form one step and run together, so that a call begins and ends at step boundaries.
 * If items are computed together, every kernel is a step.
 *
 * Several items of one entry, each a call at its own length, can be computed together in a bucket with most_items >
 * 0. At most that many items are allowed. The sum of their lengths, plus unit_offset for each except the first, is at
 * most max_length. Kernels then run one after the other for all items, on one scratch memory. A kernel that is not
 * row-wise is called once per item, with that item's length, inputs and outputs; `before` summarises the preceding
 * items. A row-wise kernel is called once, or in slices, as if all items were one. Its length is the sum of the
 * items' lengths plus the kernel's unit_offset for each item except the first, and its inputs and outputs are the
 * items' tensors, contiguous one after the other. Outputs are contiguous in all calls. Results are those of separate
 * calls; only the rounding of a vector's last elements may differ.
 */
typedef struct mdot_abi_call {
    const void *const *inputs; /* one tensor for each input of the entry */
    void *const *outputs;      /* memory for each output of the entry */
    const void *weights;       /* the image's weights */
    void *scratch;             /* working memory: scratch_bytes, and worker_bytes for each further worker */
    int64_t length;            /* 1 … max_length; 0 if the entry has no length */
    int64_t kernel_begin;      /* index of the first kernel, at least 0 */
    int64_t kernel_end;        /* index behind the last kernel, at most the bucket's kernel_count */
    int64_t share_begin;       /* begin of the slice, in parts of 2^32, at least 0 */
    int64_t share_end;         /* end of the slice, in parts of 2^32, at most MDOT_ABI_WHOLE_SLICE */
    int64_t worker;            /* number of the worker, from 0 */
    mdot_abi_items before;     /* all zero in an ordinary call */
} mdot_abi_call;

#define MDOT_ABI_WHOLE_SLICE (INT64_C(1) << 32) /* end of the slice that is all of a kernel's work */

/* An entry function of a bucket on a CPU. */
typedef void (*mdot_abi_function)(const mdot_abi_call *call);

/* Argument of a CUDA kernel. The kernel's only parameter is, by value and 16-byte aligned,
 *
 *   struct { mdot_abi_cuda_call call; unsigned char input[inline_input_bytes]; }
 *
 * Addresses are the device's. The items of a launch are predictions of one length. Scratch, inputs and outputs of
 * item i are at i times the stride. Inputs are packed: each one is dense at the run-time length and has its own
 * 16-byte aligned offset. `output`, `done` and, unless it is inline, `input` may be host memory that is mapped for
 * the device.
 *
 * When an item is finished, the kernel writes `ticket` to done[item] with a release store of system scope. A host
 * that reads the ticket there with acquire may read the item's outputs. Every launch on the same memory has a
 * different ticket. The counters at `barrier` only grow. Each launch adds grid_barriers × blocks to each, modulo
 * 2^32; barrier_base is their value before the launch.
 */
typedef struct mdot_abi_cuda_call {
    uint64_t weights;        /* the image's weights, 256-byte aligned */
    uint64_t scratch;        /* scratch_bytes per item, 256-byte aligned; uninitialised */
    uint64_t input;          /* inputs of the first item; unused if inline_input is 1 */
    uint64_t output;         /* outputs of the first item */
    uint64_t barrier;        /* uint32_t[items] */
    uint64_t done;           /* uint32_t[items] */
    uint64_t scratch_stride; /* distance of two items' scratch memories in bytes, a multiple of 16 */
    uint64_t input_stride;   /* distance of two items' inputs in bytes, a multiple of 16 */
    uint64_t output_stride;  /* distance of two items' outputs in bytes, a multiple of 16 */
    int64_t length;          /* length of every item in the launch; 0 if the entry has no length */
    uint32_t barrier_base;   /* value of the counters before this launch */
    uint32_t ticket;         /* number of this launch, which the kernel writes to done[item] */
    uint32_t inline_input;   /* 1: the inputs of the only item follow this structure in the parameter */
    uint32_t reserved;
    uint32_t input_at[MDOT_ABI_CUDA_MAX_TENSORS];  /* offset of each input in its item's block, in the entry's order */
    uint32_t output_at[MDOT_ABI_CUDA_MAX_TENSORS]; /* the same for each output */
} mdot_abi_cuda_call;

/* Kernels are compiled against copies of these layouts. Therefore a change of layout requires a new abi_version, and
 * so does a change in the meaning of a field or in the calling rules of a function.
 *
 *   5  CPU targets are images, like GPU architectures; a call runs some kernels and a slice of their work
 *   6  consecutive kernels that are not split form one step, and calls begin and end at step boundaries; the FLOPs of a
 *      bucket's kernels are in a separate list (kernel_flops_at)
 *   7  an input may name its columns (columns_at)
 *   8  row-wise kernels compute several items together
 *   9  dimensions may contain a floor
 */
static_assert(sizeof(mdot_abi_dim) == 32, "layout of mdot_abi_dim");
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

/* Mixes 32 bytes into the four lanes. Every step is invertible, so a changed word always changes its lane. */
static inline void mdot_abi_checksum_block(uint64_t lane[4], const uint64_t word[4])
{
    for (int i = 0; i < 4; i++) {
        uint64_t x = (lane[i] ^ word[i]) * UINT64_C(0x9E3779B97F4A7C15);
        lane[i] = x << 29 | x >> 35;
    }
}

/* 64-bit checksum of `bytes` bytes, chained through `seed`: 0 at the start, then the checksum of the preceding piece.
 * Four interleaved multiply-rotate lanes process 64-bit words; the tail is padded with zeros and the length is mixed
 * in. The multiplier is 2^64 divided by the golden ratio. The checksum is not cryptographic. */
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

/* Checksum of an artefact whose table starts at byte table_offset. It chains three pieces: the bytes before the
 * table, the table up to and including its `checksum` field taken as zero, and the rest. The caller guarantees that
 * the table is within the file. */
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
