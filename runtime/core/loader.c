/* loader.c — gives a checked artefact to the dynamic loader, through the descriptor that was checked, and warms it up.
 *
 * "/proc/self/fd/N" names the open file whatever became of its path. But glibc keeps the string as the loaded object's
 * name and takes a later dlopen of an equal string for the same object without looking at the file, although the number
 * may mean another file by then. So the path also spells the file's identity, in separators that mean nothing to the
 * kernel: as long as an object is loaded its file keeps device and inode, hence equal names are equal files.
 */
#include "runtime/core/predictor.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The least page size of Linux machines: a step that misses no page. */
enum { PAGE_BYTES = 4096 };

/* Reads one byte of every page, so that no call pays for mapping it. */
static void touch(const void *memory, uint64_t size_bytes)
{
    const volatile unsigned char *bytes = memory;
    for (uint64_t at = 0; at < size_bytes; at += PAGE_BYTES) (void)bytes[at];
    if (size_bytes > 0) (void)bytes[size_bytes - 1];
}

/* What comes first of the sections that only a GPU reads, from `at` on; one that is empty, at `end`, when none comes.
 */
static rt_section next_device_section(const rt_elf *elf, uint64_t at, uint64_t end)
{
    const rt_section sections[] = {elf->cubins, elf->cuda_weights};
    rt_section next = {.address = end};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (sections[i].size_bytes > 0 && sections[i].address >= at && sections[i].address < next.address)
            next = sections[i];
    return next;
}

static void touch_segments(const rt_elf *elf, const unsigned char *base)
{
    for (uint32_t i = 0; i < elf->file.segment_count; i++) {
        bs_elf_segment segment;
        if (!bs_elf_segment_at(&elf->file, i, &segment) || segment.type != PT_LOAD || !(segment.flags & PF_R)) continue;
        uint64_t at = segment.address, end = at + segment.file_bytes;
        while (at < end) {
            rt_section device = next_device_section(elf, at, end);
            touch(base + at, device.address - at);
            at = device.address + device.size_bytes;
        }
    }
}

/* The address of a section's symbol, which must be where the file has the section. NULL otherwise. */
static const void *find_symbol(void *handle, const unsigned char *base, const char *name, const rt_section *section)
{
    const void *address = dlsym(handle, name);
    return address == base + section->address ? address : NULL;
}

/* False when a file has the section but not its symbol there. */
static bool find_optional(void *handle, const unsigned char *base, const char *name, const rt_section *section,
                          const unsigned char **out_address)
{
    if (section->address == 0) return true;
    *out_address = find_symbol(handle, base, name, section);
    return *out_address != NULL;
}

static mdot_status bind(rt_library *library, const rt_elf *elf, mdot_error *err)
{
    struct link_map *map = NULL;
    if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) != 0)
        return mdot_fail(err, MDOT_IO, "the dynamic loader lost the artefact: %s", dlerror());
    const unsigned char *base = (const unsigned char *)map->l_addr;
    rt_artefact *artefact = &library->artefact;
    artefact->table = find_symbol(library->handle, base, MDOT_ABI_SYMBOL_TABLE, &elf->table);
    artefact->code = find_symbol(library->handle, base, MDOT_ABI_SYMBOL_CODE, &elf->code);
    artefact->weights = find_symbol(library->handle, base, MDOT_ABI_SYMBOL_WEIGHTS, &elf->weights);
    bool found =
        artefact->table != NULL && artefact->code != NULL && artefact->weights != NULL &&
        find_optional(library->handle, base, MDOT_ABI_SYMBOL_CUBINS, &elf->cubins, &artefact->cubins) &&
        find_optional(library->handle, base, MDOT_ABI_SYMBOL_CUDA_WEIGHTS, &elf->cuda_weights, &artefact->cuda_weights);
    if (!found)
        return mdot_fail(err, MDOT_MALFORMED,
                         "the artefact's symbols (" MDOT_ABI_SYMBOL_TABLE ", " MDOT_ABI_SYMBOL_CODE
                         ", " MDOT_ABI_SYMBOL_WEIGHTS " …) are not at its sections");
    const mdot_abi_table *checked = (const mdot_abi_table *)(elf->file.bytes + elf->table.offset);
    if (memcmp(artefact->table, checked, checked->table_bytes) != 0)
        return mdot_fail(err, MDOT_IO, "the file was overwritten while an artefact in it was open");
    touch_segments(elf, base);
    return MDOT_OK;
}

enum { IDENTITY_BITS = 128, PATH_BYTES = 2 * IDENTITY_BITS + 64 };

/* "/proc/self//././/…/fd/5": "/." for a one and "//" for a zero */
static void spell_path(int descriptor, const struct stat *file, char path[PATH_BYTES])
{
    const uint64_t identity[2] = {file->st_dev, file->st_ino};
    char *end = stpcpy(path, "/proc/self");
    for (int bit = 0; bit < IDENTITY_BITS; bit++) end = stpcpy(end, identity[bit / 64] >> (bit % 64) & 1 ? "/." : "//");
    snprintf(end, (size_t)(path + PATH_BYTES - end), "/fd/%d", descriptor);
}

/* glibc's reason without the path before it, which means nothing to people. */
static mdot_status refused(const char *path, mdot_error *err)
{
    const char *reason = dlerror();
    if (reason == NULL) reason = "no reason given";
    size_t length = strlen(path);
    if (strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0) reason += length + 2;
    return mdot_fail(err, MDOT_IO, "the dynamic loader refused the artefact (it reads it through /proc): %s", reason);
}

mdot_status rt_library_open(int descriptor, const rt_elf *elf, rt_library *out_library, mdot_error *err)
{
    struct stat file;
    if (fstat(descriptor, &file) != 0) return mdot_fail(err, MDOT_IO, "the artefact's descriptor was closed");
    char path[PATH_BYTES];
    spell_path(descriptor, &file, path);
    rt_library library = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (library.handle == NULL) return refused(path, err);
    mdot_status status = bind(&library, elf, err);
    if (status != MDOT_OK) {
        dlclose(library.handle);
        return status;
    }
    *out_library = library;
    return MDOT_OK;
}

void rt_library_close(rt_library *library)
{
    dlclose(library->handle);
}
