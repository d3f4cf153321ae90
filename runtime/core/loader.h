/* loader.h — the steps of opening an artefact: its bytes, its sections, its table, and the loaded code. */
#pragma once

#include "base/elf_read.h"
#include "runtime/core/core.h"

#include <stdatomic.h>

/* artefact_copy.c: a private copy of the file's bytes. */
typedef struct rt_copy {
    int descriptor; /* memfd; -1: ordinary memory */
    unsigned char *bytes;
    size_t size_bytes;
} rt_copy;

/* Copies the file's bytes, or the first few if it is not an ELF file. rt_copy_free frees the copy; mappings made
 * from it remain. */
mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err);
void rt_copy_free(rt_copy *copy);
/* Maps whole pages of the copy from `offset` on over those at `address`. */
mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *address,
                        mdot_error *err);
/* Frees the memory in such pages, which must not be read again. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *address);

/* elf_sections.c: positions of the sections in the file. */
typedef struct rt_section {
    uint64_t offset, address, size_bytes; /* offset in the file; address in memory relative to the load address */
} rt_section;

typedef struct rt_elf {
    bs_elf file;
    rt_section table, code, weights;
    rt_section cubins, cuda_weights; /* address 0: the file lacks the section */
} rt_elf;

/* Checks that `bytes` is a shared object for this machine without need for a dynamic loader, with the artefact's
 * sections inside read-only segments. Otherwise returns MALFORMED or INCOMPATIBLE. */
mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err);
bool rt_elf_is_code(const rt_elf *elf, uint64_t address);

/* table_check.c: checks magic, versions, sizes and checksum, then every offset and count of the table and every code
 * address. */
mdot_status rt_table_check(const rt_elf *elf, mdot_error *err);

/* loader.c: the file as loaded code. */
typedef struct rt_library {
    rt_artefact artefact;
    atomic_uint references; /* see rt_artefact_keep */
    void *memory;
    size_t size_bytes;
} rt_library;

/* Maps the segments of `elf` and touches their pages, except device-only ones. rt_artefact_release frees the
 * library. */
mdot_status rt_library_open(const rt_copy *copy, const rt_elf *elf, rt_library **out_library, mdot_error *err);
/* Frees the sections that only a device reads, unless another reference to the artefact exists. */
void rt_library_forget_device(rt_library *library, const rt_copy *copy, const rt_elf *elf);
