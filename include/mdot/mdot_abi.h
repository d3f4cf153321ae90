/* mdot_abi.h — the contract between the compiler, which writes an artefact (predictor.mdot), and the runtime.
 *
 * An image is the part of an artefact for one kind of processor: target, precision, code, and weights in the kernels'
 * layout. An artefact has at least one CPU image. All CPU images are for the ELF file's machine.
 *
 * An artefact is an ELF shared object without imported symbols and dynamic relocations. It exports
 *
 *   mdot_table         section .mdot.table         the structs in this file: an mdot_abi_table and all its contents
 *   mdot_code          section .mdot.code          int64_t[code_count]: each entry function's address minus mdot_code's
 *   mdot_weights       section .mdot.weights       CPU images' weights, 64-byte aligned, read-only
 *   mdot_cubins        section .mdot.cubins        CUDA images' code, an ELF file (cubin) each
 *   mdot_cuda_weights  section .mdot.cuda_weights  CUDA images' weights
 *
 * The last two exist only in an artefact with CUDA images; they are 256-byte aligned and read-only. Images share equal
 * weights, as a whole or in part.
 *
 * The table is free of pointers. Every `*_at` field is a byte offset from the start of the table. Strings end in NUL;
 * offset 0 means the empty string. Integers are little-endian. A reader checks in this order: ELF header and section
 * bounds, magic, abi_version, file_bytes, checksum. It then checks every offset and count against table_bytes or the
 * bounds of the target section.
 *
 * The checksum covers the whole file, with the table's `checksum` field taken as zero. It detects damage only. Note: an
 * artefact is native code, so open only artefacts that you trust. */
#ifndef MDOT_ABI_H
#define MDOT_ABI_H

#include "mdot_base.h"

#include <assert.h>
#include <string.h>

#define MDOT_ABI_MAGIC "MDOTART" /* eight bytes with the NUL */
enum {
    MDOT_ABI_VERSION = 10,          /* version of the structs below and of the calling rules */
    MDOT_ABI_ALIGNMENT = 64,        /* of the table, the code's list, the weights and scratch memory, in bytes */
    MDOT_ABI_MAX_IMAGES = 64,       /* images in an artefact */
    MDOT_ABI_MAX_DIVISOR = 1 << 16, /* largest divisor in a dimension's floor */
    MDOT_ABI_CUDA_ALIGNMENT = 256,  /* alignment of cubins and CUDA weights, in bytes */
    MDOT_ABI_CUDA_MAX_TENSORS = 16  /* most inputs of an entry on a GPU; the same for outputs */
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

/* CPU ISA levels of images, ascending within a machine. Artefacts store the values: append only. Columns: name, value,
 * text. The first two are levels in the x86-64 psABI. The third adds AVX512_BF16, dot products of bfloat16 pairs
 * (vdpbf16ps), and the fourth adds AMX_BF16, matmuls of tiles. Every AArch64 CPU with Advanced SIMD runs aarch64-neon.
 * aarch64-bf16 adds FEAT_BF16 (Armv8.6-A): bfdot and bfmmla. */
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
 * divisor and divisor <= MDOT_ABI_MAX_DIVISOR. Input dimensions have no floor, because they determine the length. */
typedef struct mdot_abi_dim {
    int64_t scale;   /* elements per length unit; 0: constant */
    int64_t offset;  /* elements at length 0, without the floor */
    int32_t times;   /* elements per floor unit; 0: the dimension has no floor */
    int32_t step;    /* length factor in the floor */
    int32_t start;   /* summand in the floor */
    int32_t divisor; /* floor divisor, 2 to MDOT_ABI_MAX_DIVISOR */
} mdot_abi_dim;

typedef struct mdot_abi_tensor {     /* an input or an output; dense, row-major */
    uint32_t name_at;                /* tensor name in the model */
    uint32_t dtype;                  /* mdot_dtype */
    uint32_t rank;                   /* dimensions, 0 to MDOT_MAX_RANK */
    uint32_t index_count;            /* rows in the tables behind an integer input of indices; 0: unknown */
    mdot_abi_dim dim[MDOT_MAX_RANK]; /* extents; all zero from `rank` on */
    /* float[default_count]: for an f32 input of jobs, defaults of the last columns for an older runtime
     * (mdot_predict.h, "Growth") */
    uint32_t defaults_at;
    uint32_t default_count; /* number of these defaults; 0: none */
    /* for the input "configuration": column names, separated by commas; 0: the first columns of
     * MDOT_CONFIGURATION_MAP */
    uint32_t columns_at;
    /* for the input "configuration": PyTorch's version if the configuration leaves it open, as 100 * major + minor; 0:
     * the predictor states none */
    uint32_t assumed_torch;
} mdot_abi_tensor;

/* A CPU kernel in a bucket; kernels stand in execution order. People and tools read this list, and so does the
 * code for divided calls. Buckets with equal kernels share one list. */
typedef struct mdot_abi_kernel {
    uint32_t name_at;    /* symbol name less the image's suffix */
    uint32_t kind_at;    /* "linear", "attention", "norm", "nest", "sequential" */
    uint32_t is_split;   /* 1: the work can be divided into slices; 0: one call does everything (mdot_abi_call) */
    uint32_t is_rowwise; /* 1: one call can process the rows of several items (mdot_abi_call) */
    int64_t unit_offset; /* a row-wise kernel has length + unit_offset rows per item, or a multiple */
} mdot_abi_kernel;

/* Code for a range of lengths, up to max_length. A call runs in the first sufficient bucket. */
typedef struct mdot_abi_bucket {
    int64_t max_length;                /* 0 in an entry that has no length */
    double flops;                      /* per call at full length */
    uint32_t kernels_at, kernel_count; /* mdot_abi_kernel[] */
    /* index among the buckets of all entries, in order; element `number` in an image's lists is this bucket's code */
    uint32_t number;
    uint32_t kernel_flops_at; /* double[kernel_count]: FLOPs of each kernel at full length */
    uint32_t most_items;      /* most items that are computed together; 0: items run separately */
    uint32_t reserved;
    int64_t unit_offset; /* the greatest unit_offset of all kernels and dimensions */
} mdot_abi_bucket;

/* An entry point: a model that callers run by name. */
typedef struct mdot_abi_entry {
    uint32_t name_at;                  /* entry name, for example "predict" */
    uint32_t inputs_at, input_count;   /* mdot_abi_tensor[] */
    uint32_t outputs_at, output_count; /* mdot_abi_tensor[] */
    uint32_t buckets_at, bucket_count; /* mdot_abi_bucket[], ascending in max_length; at least one */
    /* shortest length of a call; 0: every dimension is a constant and there is one bucket */
    uint32_t least_length;
    uint64_t schema_hash; /* checksum over the tensors and names of inputs and outputs */
} mdot_abi_entry;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* Kind of processor. */
typedef enum mdot_image_kind {
    MDOT_IMAGE_CPU = 1, /* CPUs in the ELF file's machine */
    MDOT_IMAGE_CUDA = 2 /* NVIDIA's GPUs */
} mdot_image_kind;

/* Selection of an image: targets ascend from the least to the most capable, so the runtime selects an image for the
 * last target within the processor's capabilities. Images for one target differ in precision and stand in the order of
 * the compiler's options. The first one is the default; another runs if it is requested by name
 * (mdot_open_options.kernel_precision).
 *
 * A CPU image's code is functions, all in the ELF file's text. A CUDA image's code is a cubin. A cubin runs on devices
 * with compute capability number / 10 . number % 10 and on higher minor numbers with the same major one. Accelerated
 * code (sm_90a) runs on exactly its own capability. The artefact omits PTX, so newer majors need a compilation. */
typedef struct mdot_abi_image {
    uint32_t kind;       /* mdot_image_kind */
    uint32_t number;     /* CPU: mdot_cpu_isa. CUDA: 90 for sm_90 */
    uint32_t variant;    /* CUDA: 1 for accelerated code, sm_90a; 2 for such code in clusters; otherwise 0 */
    uint32_t target_at;  /* `number` and `variant` as text: "x86-64-v4", "sm_90a" */
    uint32_t compute_at; /* the matrix kernels' precision: "fp32", "bf16", "fp16" */
    /* code of each bucket, by the bucket's number: mdot_abi_cpu_function[] or mdot_abi_cuda_kernel[] */
    uint32_t kernels_at, kernel_count;
    uint32_t resources_at; /* CUDA: mdot_abi_cuda_resources[kernel_count]; otherwise 0 */
    /* CUDA: position in .mdot.cubins, a multiple of its alignment. CPU: only the size of the image's own code, for
     * information */
    uint64_t code_offset, code_bytes;
    /* range of the weights in the kind's section, a multiple of the section's alignment; call.weights points there */
    uint64_t weights_offset, weights_bytes;
} mdot_abi_image;

/* One bucket's code on a CPU. */
typedef struct mdot_abi_cpu_function {
    uint32_t code; /* mdot_code[code] is an mdot_abi_function */
    uint32_t reserved;
    uint64_t scratch_bytes; /* memory that a call may overwrite, 64-byte aligned */
    uint64_t worker_bytes;  /* additional scratch memory for each worker except the first; divisible by 64 */
} mdot_abi_cpu_function;

/* One bucket's code on a GPU: one kernel, launched cooperatively with grid (blocks, items, 1), block (threads, 1, 1)
 * and dynamic_shared_bytes. Each item (blockIdx.y) is a separate prediction. The blocks of an item divide the work
 * among them, so any multiple of blocks_per_tile gives the right result. All blocks must be resident together, because
 * they wait for one another. */
typedef struct mdot_abi_cuda_kernel {
    uint32_t name_at; /* function name in the image */
    uint32_t threads; /* threads per block */
    /* units of length that blocks_per_tile blocks, a cluster, process at a time. More than length / tile_rows clusters,
     * rounded up, are idle. 0 in an entry without a length, where one block suffices */
    uint32_t tile_rows;
    uint32_t grid_barriers;        /* waits among an item's blocks in one call */
    uint32_t dynamic_shared_bytes; /* dynamic shared memory per block */
    /* size of the space for inputs behind mdot_abi_cuda_call in the parameter; 0 if it is absent */
    uint32_t inline_input_bytes;
    uint64_t scratch_bytes;   /* per item, at full length */
    uint32_t blocks_per_tile; /* 1 to 8; more than 1 if the kernel has clusters of this size along x */
    uint32_t reserved;
} mdot_abi_cuda_kernel;

/* A kernel's resources, read from the cubin for people, tools and tests; the driver obtains them itself. */
typedef struct mdot_abi_cuda_resources {
    uint32_t registers;           /* per thread */
    uint32_t static_shared_bytes; /* per block */
    uint32_t local_bytes;         /* stack per thread, including spilled registers */
    /* spilled register bytes stored to and loaded from the stack, counted in the code */
    uint32_t spill_bytes;
    uint32_t tensor_instructions; /* counted in the code, rather than at run time */
    uint32_t barriers;            /* hardware barriers per block, at most 16 */
    uint32_t code_bytes;          /* instruction bytes */
    uint32_t reserved;
} mdot_abi_cuda_resources;

/* The table's first struct. Everything else is found from here. */
typedef struct mdot_abi_table {
    char magic[8];          /* MDOT_ABI_MAGIC */
    uint32_t abi_version;   /* the compiler's MDOT_ABI_VERSION; another one is INCOMPATIBLE */
    uint32_t table_bytes;   /* size of the table with everything at its offsets */
    uint64_t file_bytes;    /* file size */
    uint64_t checksum;      /* the file's mdot_abi_file_checksum */
    uint64_t weights_bytes; /* all CPU images together */
    uint32_t name_at;       /* predictor name */
    /* "mdot 0.2.0, LLVM 19.1.7", followed by ", NVRTC 13.0" if there are CUDA images */
    uint32_t compiler_at;
    uint32_t entries_at, entry_count; /* mdot_abi_entry[] */
    /* mdot_abi_image[], ascending in kind, number and variant; images of one target differ in precision. The first is
     * for a CPU */
    uint32_t images_at, image_count;
    uint32_t bucket_count; /* in all entries together */
    uint32_t code_count;   /* number of int64_t in mdot_code */
} mdot_abi_table;

/* Summary of preceding items: enough for tensor sizes, which are products of at most two lengths. */
typedef struct mdot_abi_items {
    int64_t count, length, square; /* number of items, sum of lengths, sum of squared lengths */
} mdot_abi_items;

/* An entry function's argument. Inputs and outputs are in the entry's order and aligned to the element size. Weights
 * (the image's) and scratch are 64-byte aligned. The function is re-entrant. It works without allocations and system
 * calls.
 *
 * A call runs kernels kernel_begin … kernel_end - 1 of the bucket. In each kernel it computes the slice share_begin …
 * share_end of the units (rows, heads, points, in suitable groups), measured in parts of 2^32. The ordinary call runs
 * everything: all kernels, slice 0 … 2^32, worker 0.
 *
 * Threads belong to the caller. It may run one kernel at a time as several concurrent calls, under these conditions:
 *
 *   - The slices cover 0 … 2^32 exactly once, and each slice is non-empty.
 *   - Each call has a different worker number. Scratch must hold scratch_bytes + (workers - 1) × worker_bytes.
 *   - Every call with a kernel has ended before a call with a later kernel begins.
 *
 * Results are identical bit for bit for any division into slices. If a kernel is too small to split
 * (mdot_abi_kernel.is_split), the call whose slice begins at 0 does everything and the other calls skip it. Consecutive
 * such kernels form one step and run together: a call begins and ends at step boundaries. If items are computed
 * together, every kernel is a step.
 *
 * Several items of one entry, each a call at its own length, can be computed together in a bucket with most_items > 0,
 * the maximum number. The sum of the lengths, plus unit_offset for each item except the first, is at most max_length.
 * Kernels then run one after the other for all items, on one scratch memory. A kernel that is not row-wise is called
 * once per item, with the item's length, inputs and outputs; `before` summarises the preceding items. A row-wise kernel
 * is called once, or in slices, as if all items were one. Its length is the sum of the lengths plus the kernel's
 * unit_offset for each item except the first, and its inputs and outputs are the items' tensors, contiguous one after
 * the other. Outputs are contiguous in all calls. Results are equal to separate calls; only the rounding of a vector's
 * last elements may differ. */
typedef struct mdot_abi_call {
    const void *const *inputs; /* one tensor for each entry input */
    void *const *outputs;      /* memory for each entry output */
    const void *weights;       /* the image's weights */
    void *scratch;             /* working memory: scratch_bytes, and worker_bytes for each further worker */
    int64_t length;            /* 1 … max_length; 0 if the entry has no length */
    int64_t kernel_begin;      /* first kernel's index, at least 0 */
    int64_t kernel_end;        /* index behind the last kernel, at most the bucket's kernel_count */
    int64_t share_begin;       /* begin of the slice, in parts of 2^32, at least 0 */
    int64_t share_end;         /* end of the slice, in parts of 2^32, at most MDOT_ABI_WHOLE_SLICE */
    int64_t worker;            /* worker number, from 0 */
    mdot_abi_items before;     /* all zero in an ordinary call */
} mdot_abi_call;

#define MDOT_ABI_WHOLE_SLICE (INT64_C(1) << 32) /* end of a whole kernel's slice */

/* A bucket's entry function on a CPU. */
typedef void (*mdot_abi_function)(const mdot_abi_call *call);

/* A CUDA kernel's argument. The kernel's only parameter is, by value and 16-byte aligned,
 *
 *   struct { mdot_abi_cuda_call call; unsigned char input[inline_input_bytes]; }
 *
 * Addresses are the device's. The items in a launch are predictions with one length. Scratch, inputs and outputs of
 * item i are at i times the stride. Inputs are packed: each one is dense at the run-time length and has its own 16-byte
 * aligned offset. `output`, `done` and, unless it is inline, `input` may be host memory, mapped for the device.
 *
 * When an item is finished, the kernel writes `ticket` to done[item] with a release store at system scope. A host that
 * reads the ticket there with acquire may read the item's outputs. Every launch on the same memory has a different
 * ticket. The counters at `barrier` only grow. Each launch adds grid_barriers × blocks to each, modulo 2^32;
 * barrier_base is the value before the launch. */
typedef struct mdot_abi_cuda_call {
    uint64_t weights;        /* the image's weights, 256-byte aligned */
    uint64_t scratch;        /* scratch_bytes per item, 256-byte aligned; uninitialised */
    uint64_t input;          /* the first item's inputs; unused if inline_input is 1 */
    uint64_t output;         /* the first item's outputs */
    uint64_t barrier;        /* uint32_t[items] */
    uint64_t done;           /* uint32_t[items] */
    uint64_t scratch_stride; /* distance between two items' scratch memories in bytes, divisible by 16 */
    uint64_t input_stride;   /* distance between two items' inputs in bytes, divisible by 16 */
    uint64_t output_stride;  /* distance between two items' outputs in bytes, divisible by 16 */
    int64_t length;          /* length of every item in the launch; 0 if the entry has no length */
    uint32_t barrier_base;   /* the counters' value before this launch */
    uint32_t ticket;         /* launch number, which the kernel writes to done[item] */
    uint32_t inline_input;   /* 1: the inputs of the only item follow this structure in the parameter */
    uint32_t reserved;
    uint32_t input_at[MDOT_ABI_CUDA_MAX_TENSORS];  /* offset of each input in an item's block, in the entry's order */
    uint32_t output_at[MDOT_ABI_CUDA_MAX_TENSORS]; /* the same for each output */
} mdot_abi_cuda_call;

/* Kernels are compiled against copies of these layouts. Therefore a new layout requires a new abi_version, and so does
 * a new meaning of a field or of the calling rules. */
static_assert(sizeof(mdot_abi_dim) == 32, "layout of mdot_abi_dim");
static_assert(sizeof(mdot_abi_kernel) == 24, "layout of mdot_abi_kernel");
static_assert(sizeof(mdot_abi_bucket) == 48, "layout of mdot_abi_bucket");
static_assert(sizeof(mdot_abi_cuda_kernel) == 40, "layout of mdot_abi_cuda_kernel");
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

/* 64-bit checksum over `bytes` bytes, chained through `seed`: 0 at the start, then the checksum of the preceding piece.
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

/* Checksum of an artefact with a table at byte table_offset. It chains three pieces: the bytes before the table, the
 * table up to and including its `checksum` field taken as zero, and the rest. The caller guarantees that the table is
 * within the file. */
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
