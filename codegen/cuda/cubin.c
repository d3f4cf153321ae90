/* cubin.c — see nvrtc.h.
 *
 * NVIDIA leaves the format undocumented. This file uses the parts that `cuobjdump -elf` prints with names (CUDA
 * 12.4). Tests compare them with ptxas's own output on every architecture, with NVRTC 12.1, 12.9 and 13.0
 * (tests/codegen/cuda/nvrtc_versions.sh). NVRTC 12 writes its version, for example 129, into the ELF field e_version.
 *
 *   .symtab            a function symbol for each kernel, with STO_CUDA_ENTRY set in st_other
 *   .nv.info           attributes of all functions, each with the function's symbol number before the value
 *   .nv.info.NAME      attributes of one kernel
 *   .text.NAME         its instructions, 16 bytes each from sm_70 on, the opcode in the lowest 12 bits; after them
 *                      copies of the functions that it calls, whose stack and spills ptxas adds to the kernel's
 *   .nv.shared.NAME    its shared memory, after the system's own share from sm_90 on
 */
#include "codegen/cuda/nvrtc.h"

#include "base/elf_read.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
    STO_CUDA_ENTRY = 0x10,        /* in st_other: marks a kernel, unlike a function that kernels call */
    INSTRUCTION_BYTES = 16,       /* sm_70 and later */
    OPCODE_MASK = 0xfff,          /* opcode with the operands' form; predicate and operands are in the higher bits */
    OPCODE_HMMA = 0x23c,          /* mma.sync of bf16 and f16; `nvdisasm -hex` shows it from sm_75 to sm_120 */
    RESERVED_SHARED_BYTES = 1024, /* reserved by the system in every block; part of the section's size from sm_90 on */
    FIRST_SM_WITH_RESERVED = 90,
    BARRIERS_SHIFT = 20, /* seven flag bits of .text.NAME until CUDA 13, which uses an attribute instead */
    BARRIERS_MASK = 0x7f,
};

/* Attributes in .nv.info with names from cuobjdump, and the values' storage format. */
enum {
    EIATTR_MAX_THREADS = 0x05,
    EIATTR_FRAME_SIZE = 0x11,
    EIATTR_MIN_STACK_SIZE = 0x12,
    EIATTR_CBANK_PARAM_SIZE = 0x19,
    EIATTR_REGCOUNT = 0x2f,
    EIATTR_NUM_BARRIERS = 0x4c,
    EIFMT_SVAL = 4, /* the head is a size in bytes and the value follows; other formats have the value in the head */
};

typedef struct attribute {
    unsigned format, code;
    uint32_t head;              /* value of the short formats */
    const unsigned char *value; /* for EIFMT_SVAL, `head` bytes */
} attribute;

/* Advances *at. Returns false at the section's end, or if the rest is too short for an attribute. */
static bool next_attribute(const bs_elf_section *section, size_t *index, attribute *out)
{
    const unsigned char *bytes = section->bytes;
    if (section->size_bytes - *index < 4) return false;
    attribute a = {bytes[*index], bytes[*index + 1], bytes[*index + 2] | (uint32_t)bytes[*index + 3] << 8, NULL};
    *index += 4;
    if (a.format == EIFMT_SVAL) {
        if (section->size_bytes - *index < a.head) return false;
        a.value = bytes + *index;
        *index += a.head;
    }
    *out = a;
    return true;
}

static uint32_t word_at(const attribute *a, size_t index)
{
    uint32_t word = 0;
    if (a->value != NULL && (index + 1) * sizeof word <= a->head)
        memcpy(&word, a->value + index * sizeof word, sizeof word);
    return word;
}

static bool find_kernel_section(const bs_elf *elf, const char *prefix, const char *kernel, bs_elf_section *out)
{
    size_t prefix_bytes = strlen(prefix);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        bs_elf_section section;
        if (!bs_elf_section_at(elf, i, &section) || strncmp(section.name, prefix, prefix_bytes) != 0 ||
            strcmp(section.name + prefix_bytes, kernel) != 0)
            continue;
        *out = section;
        return true;
    }
    return false;
}

/* Reads registers and stack from the attributes of all functions. */
static void read_common_attributes(const bs_elf_section *info, uint32_t symbol, cu_cubin_kernel *kernel)
{
    attribute a;
    for (size_t index = 0; next_attribute(info, &index, &a);) {
        if (a.format != EIFMT_SVAL || word_at(&a, 0) != symbol) continue;
        uint32_t value = word_at(&a, 1);
        if (a.code == EIATTR_REGCOUNT) kernel->registers = value;
        /* the minimum stack covers the deepest call; the frame is the kernel's own */
        bool is_stack = a.code == EIATTR_FRAME_SIZE || a.code == EIATTR_MIN_STACK_SIZE;
        if (is_stack && value > kernel->local_bytes) kernel->local_bytes = value;
    }
}

static void read_own_attributes(const bs_elf_section *info, cu_cubin_kernel *kernel)
{
    attribute a;
    for (size_t index = 0; next_attribute(info, &index, &a);) {
        if (a.code == EIATTR_MAX_THREADS && a.format == EIFMT_SVAL)
            kernel->max_threads = word_at(&a, 0) * word_at(&a, 1) * word_at(&a, 2);
        if (a.code == EIATTR_CBANK_PARAM_SIZE && a.format != EIFMT_SVAL) kernel->parameter_bytes = a.head;
        if (a.code == EIATTR_NUM_BARRIERS && a.format != EIFMT_SVAL) kernel->barriers = a.head & 0xff;
    }
}

static uint32_t count_tensor_instructions(const bs_elf_section *text)
{
    uint32_t count = 0;
    for (size_t index = 0; index + INSTRUCTION_BYTES <= text->size_bytes; index += INSTRUCTION_BYTES) {
        uint64_t word;
        memcpy(&word, text->bytes + index, sizeof word);
        count += (word & OPCODE_MASK) == OPCODE_HMMA;
    }
    return count;
}

/* Sums "…, 8 bytes spill stores, 16 bytes spill loads" on the line after "Function properties for NAME". */
static bool read_spills(const char *log, const char *kernel, uint32_t *out_bytes)
{
    static const char title[] = "Function properties for ";
    size_t kernel_bytes = strlen(kernel);
    for (const char *cursor = log; (cursor = strstr(cursor, title)) != NULL;) {
        cursor += strlen(title);
        if (strncmp(cursor, kernel, kernel_bytes) != 0 || cursor[kernel_bytes] != '\n') continue;
        const char *line = cursor + kernel_bytes + 1, *end = strchr(line, '\n');
        const char *frame_end = strstr(line, "stack frame, ");
        unsigned stores, loads;
        if (frame_end == NULL || (end != NULL && frame_end > end) ||
            sscanf(frame_end, "stack frame, %u bytes spill stores, %u bytes spill loads", &stores, &loads) != 2)
            return false;
        *out_bytes = stores + loads;
        return true;
    }
    return false;
}

static mdot_status read_kernel(const bs_elf *elf, const cu_cubin *cubin, uint32_t symbol, cu_cubin_kernel *kernel,
                               mdot_error *err)
{
    bs_elf_section section;
    if (!find_kernel_section(elf, ".text.", kernel->name, &section) || section.bytes == NULL)
        return mdot_fail(err, MDOT_MALFORMED, "the cubin has no code for kernel %s", kernel->name);
    kernel->code_bytes = (uint32_t)section.size_bytes;
    kernel->tensor_instructions = count_tensor_instructions(&section);
    kernel->barriers = (uint32_t)(section.flags >> BARRIERS_SHIFT) & BARRIERS_MASK;
    if (bs_elf_section_named(elf, ".nv.info", &section) && section.bytes != NULL)
        read_common_attributes(&section, symbol, kernel);
    if (find_kernel_section(elf, ".nv.info.", kernel->name, &section) && section.bytes != NULL)
        read_own_attributes(&section, kernel);
    if (kernel->registers == 0)
        return mdot_fail(err, MDOT_MALFORMED, "the cubin lacks the number of registers of kernel %s", kernel->name);
    if (find_kernel_section(elf, ".nv.shared.", kernel->name, &section)) {
        size_t reserved = cubin->sm >= FIRST_SM_WITH_RESERVED ? RESERVED_SHARED_BYTES : 0;
        kernel->shared_bytes = (uint32_t)(section.size_bytes > reserved ? section.size_bytes - reserved : 0);
    }
    if (!read_spills(cubin->log, kernel->name, &kernel->spill_bytes)) kernel->spill_bytes = kernel->local_bytes;
    return MDOT_OK;
}

/* The architecture's number: the second byte of the flags if the ABI is 8 (CUDA 13), otherwise the first. */
static uint32_t architecture(const bs_elf *elf)
{
    return elf->abi_version >= 8 ? elf->flags >> 8 & 0xff : elf->flags & 0xff;
}

/* The symbol's name if it is a kernel, otherwise NULL. */
static const char *kernel_symbol(const bs_elf_section *symbols, const bs_elf_section *names, size_t index)
{
    Elf64_Sym symbol;
    memcpy(&symbol, symbols->bytes + index * sizeof symbol, sizeof symbol);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & STO_CUDA_ENTRY) == 0 ||
        symbol.st_name >= names->size_bytes)
        return NULL;
    return (const char *)names->bytes + symbol.st_name;
}

static mdot_status read_kernels(const bs_elf *elf, ir_arena *arena, cu_cubin *cubin, mdot_error *err)
{
    bs_elf_section symbols, names;
    if (!bs_elf_section_named(elf, ".symtab", &symbols) || symbols.bytes == NULL ||
        !bs_elf_section_at(elf, symbols.link, &names) || names.bytes == NULL || names.size_bytes == 0 ||
        names.bytes[names.size_bytes - 1] != '\0')
        return mdot_fail(err, MDOT_MALFORMED, "the cubin has no symbols");
    size_t symbol_count = symbols.size_bytes / sizeof(Elf64_Sym), kernel_count = 0;
    for (size_t i = 0; i < symbol_count; i++) kernel_count += kernel_symbol(&symbols, &names, i) != NULL;
    cubin->kernels = IR_NEW_ARRAY(arena, cu_cubin_kernel, kernel_count + 1);
    if (cubin->kernels == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < symbol_count; i++) {
        const char *name = kernel_symbol(&symbols, &names, i);
        if (name == NULL) continue;
        cu_cubin_kernel *kernel = &cubin->kernels[cubin->kernel_count++];
        kernel->name = ir_arena_strdup(arena, name);
        if (kernel->name == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        BS_TRY(read_kernel(elf, cubin, (uint32_t)i, kernel, err));
    }
    return MDOT_OK;
}

mdot_status cu_cubin_read(const void *bytes, size_t size_bytes, const char *log, ir_arena *arena, cu_cubin *out_cubin,
                          mdot_error *err)
{
    bs_elf elf;
    mdot_error reason = {0};
    if (bs_elf_open(bytes, size_bytes, "a cubin", EM_CUDA, &elf, &reason) != MDOT_OK)
        return mdot_fail(err, MDOT_MALFORMED, "invalid cubin: %s", reason.message);
    cu_cubin cubin = {
        .bytes = bytes, .size_bytes = size_bytes, .log = log != NULL ? log : "", .sm = architecture(&elf)};
    BS_TRY(read_kernels(&elf, arena, &cubin, err));
    *out_cubin = cubin;
    return MDOT_OK;
}

const cu_cubin_kernel *cu_cubin_find(const cu_cubin *cubin, const char *name)
{
    for (int i = 0; i < cubin->kernel_count; i++)
        if (strcmp(cubin->kernels[i].name, name) == 0) return &cubin->kernels[i];
    return NULL;
}
