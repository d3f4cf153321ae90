/* predictor.c — opening and closing an artefact: check everything through one descriptor, then load through the same.
 *
 * Whatever can go wrong with a file, a machine or memory goes wrong here; a predictor that opened cannot fail later. A
 * device can: then the CPU answers (run.c).
 */
#include "runtime/core/predictor.h"
#include "base/sized.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prefixes the message with the file. The message itself is formatted aside first: see mdot_fail. */
static mdot_status in_file(const char *path, mdot_status status, mdot_error *err)
{
    if (err == NULL) return status;
    return mdot_fail(err, status, "%s: %s", path, err->message);
}

/* The file while it is being checked. */
typedef struct file_map {
    int descriptor;
    void *bytes;
    size_t size_bytes;
} file_map;

static mdot_status map_descriptor(int descriptor, file_map *out_file, mdot_error *err)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return mdot_fail(err, MDOT_IO, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode)) return mdot_fail(err, MDOT_MALFORMED, "not a regular file, so not an artefact");
    if (info.st_size <= 0) return mdot_fail(err, MDOT_MALFORMED, "an empty file is not an artefact");
    if ((uintmax_t)info.st_size > SIZE_MAX) return mdot_fail(err, MDOT_MALFORMED, "the file is too large to be mapped");
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return mdot_fail(err, errno == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_IO, "mapping failed: %s", strerror(errno));
    *out_file = (file_map){descriptor, bytes, (size_t)info.st_size};
    return MDOT_OK;
}

/* O_NONBLOCK: a named pipe is refused, not waited for. */
static mdot_status map_file(const char *path, file_map *out_file, mdot_error *err)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return mdot_fail(err, errno == ENOENT || errno == ENOTDIR ? MDOT_NOT_FOUND : MDOT_IO, "%s", strerror(errno));
    mdot_status status = map_descriptor(descriptor, out_file, err);
    if (status != MDOT_OK) close(descriptor);
    return status;
}

static mdot_status load(mdot_predictor *predictor, const file_map *file, const char *forced_level, mdot_error *err)
{
    rt_elf elf;
    mdot_status status = rt_elf_read(file->bytes, file->size_bytes, &elf, err);
    if (status != MDOT_OK) return status;
    status = rt_table_check(&elf, err);
    if (status != MDOT_OK) return status;
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    const mdot_abi_table *table = (const mdot_abi_table *)((const char *)file->bytes + elf.table.offset);
    const mdot_abi_image *image;
    status = rt_cpu_choose(&cpu, table, forced_level, &image, err);
    if (status != MDOT_OK) return status;
    status = rt_library_open(file->descriptor, &elf, &predictor->library, err);
    if (status != MDOT_OK) return status;
    predictor->table = predictor->library.artefact.table;
    predictor->image = rt_image(predictor->table, (size_t)(image - rt_image(table, 0)));
    predictor->functions = rt_cpu_functions(predictor->table, predictor->image);
    return MDOT_OK;
}

static const bs_sized options_type = BS_SIZED(mdot_open_options, user);

mdot_status rt_predictor_open(const rt_rooms *rooms, const char *path, const mdot_open_options *options,
                              mdot_predictor **out_predictor, mdot_error *err)
{
    if (path == NULL || out_predictor == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_predictor_open needs a path and a place for the result");
    mdot_open_options o = {0};
    mdot_status status = options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK;
    if (status != MDOT_OK) return status;
    rt_allocator allocator;
    status = rt_allocator_init(&allocator, &o, err);
    if (status != MDOT_OK) return status;
    const char *level = o.cpu_level != NULL ? o.cpu_level : getenv("MDOT_CPU_LEVEL");
    if (level != NULL && level[0] == '\0') level = NULL;
    mdot_predictor *predictor = rt_alloc(&allocator, sizeof *predictor);
    if (predictor == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: no memory for a predictor", path);
    predictor->allocator = allocator;
    predictor->rooms = rooms;
    file_map file = {0};
    status = map_file(path, &file, err);
    if (status == MDOT_OK) {
        status = load(predictor, &file, level, err);
        munmap(file.bytes, file.size_bytes);
        close(file.descriptor);
    }
    if (status == MDOT_OK) {
        status = rt_device_open(predictor, &o, err);
        if (status != MDOT_OK) rt_library_close(&predictor->library);
    }
    if (status != MDOT_OK) {
        rt_free(&allocator, predictor);
        return in_file(path, status, err);
    }
    *out_predictor = predictor;
    return MDOT_OK;
}

void mdot_predictor_close(mdot_predictor *predictor)
{
    if (predictor == NULL) return;
    rt_device_close(predictor);
    rt_library_close(&predictor->library);
    rt_allocator allocator = predictor->allocator;
    rt_free(&allocator, predictor);
}

/* ---- For the other rooms ----------------------------------------------------------------------------------------- */

const rt_artefact *rt_predictor_artefact(const mdot_predictor *predictor)
{
    return &predictor->library.artefact;
}

const rt_allocator *rt_predictor_allocator(const mdot_predictor *predictor)
{
    return &predictor->allocator;
}
