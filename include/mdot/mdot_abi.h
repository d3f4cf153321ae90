/* mdot_abi.h — the contract between the compiler, which writes an artefact (predictor.mdot), and the runtime.
 *
 * An artefact is an ELF shared object that imports no symbol and needs no dynamic relocation. It exports three symbols:
 *
 *   mdot_table    section .mdot.table    what this file describes: an mdot_abi_table and all that it points to
 *   mdot_code     section .mdot.code     int64_t[code_count]: each entry function's address minus that of mdot_code
 *   mdot_weights  section .mdot.weights  the packed weights, 64-byte aligned, read-only
 *
 * The table holds no pointers. Every `*_at` field is a byte offset from the start of the table; strings end in NUL, and
 * offset 0 stands for the empty string. Integers are little-endian. A reader checks, in this order: ELF header and
 * section bounds, magic, abi_version, file_bytes, checksum, and then every offset and count against table_bytes.
 *
 * The checksum covers the whole file, the table's `checksum` field taken as zero. It finds damage, not malice: an
 * artefact is native code, so open only what you trust.
 */
#ifndef MDOT_ABI_H
#define MDOT_ABI_H

#include "mdot_base.h"

#include <string.h>

#define MDOT_ABI_MAGIC "MDOTART" /* eight bytes with the NUL */
enum { MDOT_ABI_VERSION = 1, MDOT_ABI_ALIGNMENT = 64, MDOT_ABI_MAX_LEVELS = 8 };

#define MDOT_ABI_SYMBOL_TABLE "mdot_table"
#define MDOT_ABI_SYMBOL_CODE "mdot_code"
#define MDOT_ABI_SYMBOL_WEIGHTS "mdot_weights"
#define MDOT_ABI_SECTION_TABLE ".mdot.table"
#define MDOT_ABI_SECTION_CODE ".mdot.code"
#define MDOT_ABI_SECTION_WEIGHTS ".mdot.weights"

/* CPU feature levels, least first; values are stored in artefacts: append only. name, value, text (also LLVM's
 * target-cpu). The levels are those of the x86-64 psABI. */
#define MDOT_CPU_LEVEL_MAP(X)                                                                                          \
    X(X86_64_V3, 1, "x86-64-v3")                                                                                       \
    X(X86_64_V4, 2, "x86-64-v4")

typedef enum mdot_cpu_level {
    MDOT_CPU_NONE = 0,
#define MDOT_CPU_LEVEL_ENUM(name, value, text) MDOT_CPU_##name = value,
    MDOT_CPU_LEVEL_MAP(MDOT_CPU_LEVEL_ENUM)
#undef MDOT_CPU_LEVEL_ENUM
} mdot_cpu_level;

/* scale * length + offset, where length is the run-time extent of the bucket's dimension. */
typedef struct mdot_abi_dim {
    int64_t scale, offset;
} mdot_abi_dim;

typedef struct mdot_abi_tensor { /* an input or an output; dense, row-major */
    uint32_t name_at;
    uint32_t dtype; /* mdot_dtype */
    uint32_t rank;
    uint32_t reserved;
    mdot_abi_dim dim[MDOT_MAX_RANK];
} mdot_abi_tensor;

typedef struct mdot_abi_kernel { /* for people and tools: what one bucket runs, in order */
    uint32_t name_at;            /* the symbol's name without its level */
    uint32_t kind_at;            /* "linear", "attention", "norm", "nest", "sequential" */
    double flops;                /* at full length */
} mdot_abi_kernel;

typedef struct mdot_abi_bucket {
    int64_t max_length;     /* 0 in an entry without a length */
    uint64_t scratch_bytes; /* of 64-byte aligned memory that a call may overwrite */
    double flops;           /* of one call at full length */
    uint32_t kernels_at, kernel_count;
    uint32_t first_code; /* mdot_code[first_code + l] runs this bucket on level l of the table's level list */
    uint32_t reserved;
} mdot_abi_bucket;

typedef struct mdot_abi_entry {
    uint32_t name_at;
    uint32_t inputs_at, input_count;   /* mdot_abi_tensor[] */
    uint32_t outputs_at, output_count; /* mdot_abi_tensor[] */
    uint32_t buckets_at, bucket_count; /* mdot_abi_bucket[], ascending in max_length; at least one */
    uint32_t has_length;               /* 0: every dimension is a number and there is one bucket */
    uint64_t schema_hash;              /* checksum of the bytes of the inputs' and outputs' tensors and names */
} mdot_abi_entry;

typedef struct mdot_abi_table {
    char magic[8];
    uint32_t abi_version;
    uint32_t table_bytes;
    uint64_t file_bytes;
    uint64_t checksum;
    uint64_t weights_bytes;
    uint32_t name_at;     /* the predictor's name */
    uint32_t compiler_at; /* "mdot 0.1.0, LLVM 19.1.7" */
    uint32_t compute_at;  /* arithmetic of the matrix kernels: "fp32" */
    uint32_t level_count;
    uint32_t levels[MDOT_ABI_MAX_LEVELS]; /* mdot_cpu_level, ascending */
    uint32_t entries_at, entry_count;     /* mdot_abi_entry[] */
    uint32_t code_count;                  /* sum of the buckets of all entries × level_count */
    uint32_t reserved;
} mdot_abi_table;

/* What an entry function is called with. Inputs and outputs are in the entry's order, aligned to their element size;
 * weights and scratch are 64-byte aligned. The function is re-entrant, allocates nothing and makes no system call. */
typedef struct mdot_abi_call {
    const void *const *inputs;
    void *const *outputs;
    const void *weights;
    void *scratch;
    int64_t length; /* 1 … max_length; 0 where the entry has no length */
} mdot_abi_call;

typedef void (*mdot_abi_function)(const mdot_abi_call *call);

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
