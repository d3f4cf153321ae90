/* predictor.c — opens an artefact: one copy of the file is checked and loaded.
 *
 * All failures of the file, the machine or memory occur here; an open predictor cannot fail later. A device can fail
 * later; then the CPU answers (run.c). */
#include "base/file.h"
#include "base/struct_version.h"
#include "runtime/core/cpu.h"
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"

#include <stdlib.h>
#include <unistd.h>

/* Prefixes the message with the file name. mdot_fail formats the message before it overwrites err. */
static mdot_status in_file(const char *path, mdot_status status, mdot_error *err)
{
    if (status == MDOT_OK || err == NULL) return status;
    return mdot_fail(err, status, "%s: %s", path, err->message);
}

/* The file while it is being opened. */
typedef struct opening {
    rt_copy copy;
    rt_elf elf;
} opening;

static mdot_status copy_file(const char *path, rt_copy *out_copy, mdot_error *err)
{
    int descriptor;
    uint64_t size_bytes;
    BS_TRY(bs_open_file(path, &descriptor, &size_bytes, err));
    mdot_status status = in_file(path, rt_copy_make(descriptor, size_bytes, out_copy, err), err);
    close(descriptor);
    return status;
}

static mdot_status load(mdot_predictor *predictor, opening *file, const char *forced_level,
                        const char *kernel_precision, mdot_error *err)
{
    BS_TRY(rt_elf_read(file->copy.bytes, file->copy.size_bytes, &file->elf, err));
    BS_TRY(rt_table_check(&file->elf, err));
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    const mdot_abi_table *table = (const mdot_abi_table *)(file->copy.bytes + file->elf.table.offset);
    if (rt_cpu_has_tiles(table)) rt_cpu_ask_for_tiles(&cpu);
    const mdot_abi_image *image;
    BS_TRY(rt_cpu_choose(&cpu, table, forced_level, kernel_precision, &image, err));
    BS_TRY(rt_library_open(&file->copy, &file->elf, &predictor->library, err));
    predictor->table = predictor->library->artefact.table;
    predictor->image = rt_image(predictor->table, (size_t)(image - rt_image(table, 0)));
    rt_cpu_explain(&cpu, predictor->table, predictor->image, predictor->cpu_reason, sizeof predictor->cpu_reason);
    predictor->functions = rt_cpu_functions(predictor->table, predictor->image);
    return MDOT_OK;
}

static mdot_status open_file(mdot_predictor *predictor, const char *path, const char *level,
                             const mdot_open_options *options, mdot_error *err)
{
    opening file;
    BS_TRY(copy_file(path, &file.copy, err));
    mdot_status status = in_file(path, load(predictor, &file, level, options->kernel_precision, err), err);
    if (status == MDOT_OK) {
        status = in_file(path, rt_device_open(predictor, options, err), err);
        if (status == MDOT_OK)
            rt_library_forget_device(predictor->library, &file.copy, &file.elf);
        else
            rt_artefact_release(&predictor->library->artefact);
    }
    rt_copy_free(&file.copy);
    return status;
}

static const bs_struct_version options_type = BS_SIZED(mdot_open_options, user);

mdot_status rt_predictor_open(const rt_components *components, const char *path, const mdot_open_options *options,
                              mdot_predictor **out_predictor, mdot_error *err)
{
    if (path == NULL || out_predictor == NULL)
        return BS_INVALID(err, "mdot_predictor_open: path or out_predictor is NULL");
    mdot_open_options o = {0};
    BS_TRY(options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK);
    rt_allocator allocator;
    BS_TRY(rt_allocator_init(&allocator, &o, err));
    const char *level = o.cpu_isa != NULL ? o.cpu_isa : secure_getenv("MDOT_CPU_ISA");
    if (level != NULL && level[0] == '\0') level = NULL;
    mdot_predictor *predictor = rt_alloc(&allocator, sizeof *predictor);
    if (predictor == NULL) return BS_OUT_OF_MEMORY(err, "the predictor %s", path);
    predictor->allocator = allocator;
    predictor->components = components;
    atomic_init(&predictor->references, 1);
    mdot_status status = open_file(predictor, path, level, &o, err);
    if (status != MDOT_OK) {
        rt_free(&allocator, predictor);
        return status;
    }
    rt_handle_register(predictor, RT_PREDICTOR);
    *out_predictor = predictor;
    return MDOT_OK;
}

const rt_artefact *rt_predictor_artefact(const mdot_predictor *predictor) { return &predictor->library->artefact; }

const rt_allocator *rt_predictor_allocator(const mdot_predictor *predictor) { return &predictor->allocator; }
