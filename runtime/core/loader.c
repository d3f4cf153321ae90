/* loader.c — maps a checked artefact's segments as executable code, and warms them up.
 *
 * elf_sections.c refuses artefacts with relocations, initialisers or dependencies. Therefore the segments are mapped
 * directly at their relative addresses, from the checked copy, without a dynamic loader. All of them are read-only. */
#include "runtime/core/loader.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The smallest page size of Linux machines, so that stepping by it touches every page. */
enum { PAGE_BYTES = 4096 };

/* Reads one byte of every page, so that later calls find it mapped. */
static void touch(const void *memory, uint64_t size_bytes)
{
    const volatile unsigned char *bytes = memory;
    for (uint64_t offset = 0; offset < size_bytes; offset += PAGE_BYTES) (void)bytes[offset];
    if (size_bytes > 0) (void)bytes[size_bytes - 1];
}

/* The first section from `at` on that only a GPU reads. If there is none, an empty section at `end`. */
static rt_section next_device_section(const rt_elf *elf, uint64_t address, uint64_t end)
{
    const rt_section sections[] = {elf->cubins, elf->cuda_weights};
    rt_section nearest = {.address = end};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (sections[i].size_bytes > 0 && sections[i].address >= address && sections[i].address < nearest.address)
            nearest = sections[i];
    return nearest;
}

static void touch_segments(const rt_elf *elf, const unsigned char *base)
{
    for (uint32_t i = 0; i < elf->file.segment_count; i++) {
        bs_elf_segment segment;
        if (!bs_elf_segment_at(&elf->file, i, &segment) || segment.type != PT_LOAD || !(segment.flags & PF_R)) continue;
        uint64_t address = segment.address, end = address + segment.file_bytes;
        while (address < end) {
            rt_section device = next_device_section(elf, address, end);
            touch(base + address, device.address - address);
            address = device.address + device.size_bytes;
        }
    }
}

/* The address range of all loaded segments, from the first one's page to the end of the last one's page. */
typedef struct span {
    uint64_t start, end, page;
} span;

static bool find_loaded(const rt_elf *elf, uint32_t index, bs_elf_segment *out_segment)
{
    return bs_elf_segment_at(&elf->file, index, out_segment) && out_segment->type == PT_LOAD &&
           out_segment->memory_bytes > 0;
}

/* Segments have the same offset within a page in memory as in the file: gABI, chapter 5, "Program Loading". */
static mdot_status measure(const rt_elf *elf, span *out_span, mdot_error *err)
{
    span s = {.start = UINT64_MAX, .page = (uint64_t)sysconf(_SC_PAGESIZE)};
    for (uint32_t i = 0; i < elf->file.segment_count; i++) {
        bs_elf_segment segment;
        if (!find_loaded(elf, i, &segment)) continue;
        if (segment.address % s.page != segment.offset % s.page)
            return mdot_fail(err, MDOT_MALFORMED, "ELF segment %u has different page offsets in memory and in the file",
                             i);
        uint64_t start = segment.address - segment.address % s.page, end = segment.address + segment.memory_bytes;
        if (start < s.start) s.start = start;
        if (end > s.end) s.end = end;
    }
    /* At least the sections' segments exist. mmap refuses sizes beyond the memory. */
    if (s.end > UINT64_MAX - s.page)
        return mdot_fail(err, MDOT_MALFORMED, "an ELF segment ends beyond the address space");
    s.end = (s.end + s.page - 1) / s.page * s.page;
    *out_span = s;
    return MDOT_OK;
}

static mdot_status map_segment(const rt_copy *copy, const bs_elf_segment *segment, const span *s, unsigned char *memory,
                               mdot_error *err)
{
    uint64_t before = segment->address % s->page; /* offset in its first page */
    unsigned char *address = memory + (segment->address - before - s->start);
    uint64_t file_bytes = (before + segment->file_bytes + s->page - 1) / s->page * s->page;
    uint64_t memory_bytes = (before + segment->memory_bytes + s->page - 1) / s->page * s->page;
    int protection = (segment->flags & PF_R ? PROT_READ : 0) | (segment->flags & PF_X ? PROT_EXEC : 0);
    mdot_status status = MDOT_OK;
    if (segment->file_bytes == 0)
        file_bytes = 0;
    else
        status = rt_copy_map(copy, segment->offset - before, (size_t)file_bytes, protection, address, err);
    if (status == MDOT_OK && memory_bytes > file_bytes &&
        mprotect(address + file_bytes, (size_t)(memory_bytes - file_bytes), PROT_READ) != 0)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return status;
}

static const unsigned char *section_at(const unsigned char *base, const rt_section *section)
{
    return section->address != 0 ? base + section->address : NULL;
}

/* Reserves an empty address range. The structure comes from libc, because the memory functions of a predictor's
 * options are unavailable after the predictor is freed. */
static mdot_status reserve(size_t size_bytes, rt_library **out_library, mdot_error *err)
{
    rt_library *library = calloc(1, sizeof *library);
    void *memory = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (library == NULL || memory == MAP_FAILED) {
        if (memory != MAP_FAILED) munmap(memory, size_bytes);
        free(library);
        return BS_OUT_OF_MEMORY(err, "%zu bytes of an artefact", size_bytes);
    }
    atomic_init(&library->references, 1);
    library->memory = memory;
    library->size_bytes = size_bytes;
    *out_library = library;
    return MDOT_OK;
}

mdot_status rt_library_open(const rt_copy *copy, const rt_elf *elf, rt_library **out_library, mdot_error *err)
{
    span s = {0};
    rt_library *library = NULL;
    mdot_status status = measure(elf, &s, err);
    if (status == MDOT_OK) status = reserve((size_t)(s.end - s.start), &library, err);
    if (status != MDOT_OK) return status;
    for (uint32_t i = 0; i < elf->file.segment_count && status == MDOT_OK; i++) {
        bs_elf_segment segment;
        if (find_loaded(elf, i, &segment)) status = map_segment(copy, &segment, &s, library->memory, err);
    }
    if (status != MDOT_OK) {
        rt_artefact_release(&library->artefact);
        return status;
    }
    const unsigned char *base = (const unsigned char *)((uintptr_t)library->memory - s.start);
    library->artefact = (rt_artefact){
        .table = (const mdot_abi_table *)section_at(base, &elf->table),
        .code = (const int64_t *)section_at(base, &elf->code),
        .weights = section_at(base, &elf->weights),
        .cubins = section_at(base, &elf->cubins),
        .cuda_weights = section_at(base, &elf->cuda_weights),
    };
    touch_segments(elf, base);
    *out_library = library;
    return MDOT_OK;
}

/* Frees the pages that contain only this section. */
static void forget(const rt_copy *copy, const rt_section *section, const unsigned char *at, uint64_t page)
{
    if (at == NULL) return;
    uint64_t skipped = (page - section->offset % page) % page;
    if (section->size_bytes <= skipped) return;
    uint64_t size_bytes = (section->size_bytes - skipped) / page * page;
    if (size_bytes == 0) return;
    rt_copy_forget(copy, section->offset + skipped, (size_t)size_bytes, (void *)(uintptr_t)(at + skipped));
}

void rt_library_forget_device(rt_library *library, const rt_copy *copy, const rt_elf *elf)
{
    if (atomic_load(&library->references) > 1) return;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    forget(copy, &elf->cubins, library->artefact.cubins, page);
    forget(copy, &elf->cuda_weights, library->artefact.cuda_weights, page);
    library->artefact.cubins = library->artefact.cuda_weights = NULL;
}

/* The artefact is the library's first member. Readers hold it as const. */
static rt_library *library_of(const rt_artefact *artefact) { return (rt_library *)(uintptr_t)artefact; }

void rt_artefact_keep(const rt_artefact *artefact) { atomic_fetch_add(&library_of(artefact)->references, 1); }

void rt_artefact_release(const rt_artefact *artefact)
{
    rt_library *library = library_of(artefact);
    if (atomic_fetch_sub(&library->references, 1) > 1) return;
    munmap(library->memory, library->size_bytes);
    free(library);
}
