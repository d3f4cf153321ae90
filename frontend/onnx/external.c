/* external.c — tensors whose bytes are in another file (ONNX's ExternalData.md).
 *
 * A model may come from an untrusted source, and a location outside its folder would expose the user's other files.
 * Therefore the path is walked component by component from the model's folder, without following links. The file must
 * be a regular one with a single name, because a hard link would escape as well.
 */
#include "frontend/onnx/import_context.h"

#include "base/file.h"
#include "frontend/onnx/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Memory for the results of passes on a weight: other layouts, and wider numbers while folding. */
enum { GRAPH_BYTES_PER_BYTE = 32 };

typedef struct location {
    const char *path;
    uint64_t offset, length;
    bool has_length;
} location;

static mdot_status refuse(const fe_context *context, const char *kind, const char *name, const char *path,
                          const char *reason)
{
    return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s '%s': external data '%s': %s", context->file, kind, name,
                     path, reason);
}

static bool parse_decimal(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (INT64_MAX - digit) / 10) return false; /* the largest file size is 2^63 - 1 */
        value = 10 * value + digit;
    }
    *out = value;
    return true;
}

/* Entries are pairs of key and value. A checksum is ignored, as in other implementations. */
static mdot_status parse_location(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                                  const char *name, location *out)
{
    location l = {0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = fe_text(proto->external_data[i]->key), *value = fe_text(proto->external_data[i]->value);
        bool ok = true;
        if (strcmp(key, "location") == 0) l.path = value;
        if (strcmp(key, "offset") == 0) ok = parse_decimal(value, &l.offset);
        if (strcmp(key, "length") == 0) ok = l.has_length = parse_decimal(value, &l.length);
        if (!ok)
            return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s '%s': external data has %s '%s' instead of a number",
                             context->file, kind, name, key, value);
    }
    if (l.path == NULL || !*l.path)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s '%s': external data lacks a location", context->file,
                         kind, name);
    *out = l;
    return MDOT_OK;
}

/* Opens the component [begin, end) of a path in `folder_fd`. On failure, returns -1 and a reason. */
static int open_component(int folder_fd, const char *begin, const char *end, bool is_last, const char **out_reason)
{
    char component[256]; /* NAME_MAX and a NUL */
    size_t length = (size_t)(end - begin);
    *out_reason = "a part of the path is too long";
    if (length >= sizeof component) return -1;
    memcpy(component, begin, length);
    component[length] = '\0';
    *out_reason = "the path contains an empty part, '.' or '..'; move the file into the model's folder";
    if (length == 0 || strcmp(component, ".") == 0 || strcmp(component, "..") == 0) return -1;
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (is_last ? 0 : O_DIRECTORY);
    int fd = openat(folder_fd, component, flags);
    if (fd >= 0) return fd;
    int failure = errno;
    struct stat info;
    bool link = fstatat(folder_fd, component, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    if (link)
        *out_reason = "a part of the path is a symbolic link; copy the file instead";
    else
        *out_reason = failure == ENOENT ? "the file is absent; put it into the model's folder" : strerror(failure);
    return -1;
}

static int open_inside(const char *folder, const char *path, const char **out_reason)
{
    *out_reason = "an absolute path; use a path relative to the model's folder";
    if (path[0] == '/') return -1;
    int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0) *out_reason = strerror(errno);
    while (fd >= 0) {
        const char *end = strchr(path, '/');
        int inner = open_component(fd, path, end != NULL ? end : path + strlen(path), end == NULL, out_reason);
        close(fd);
        fd = inner;
        if (end == NULL) break;
        path = end + 1;
    }
    return fd;
}

static mdot_status read_location(const fe_context *context, int fd, const location *l, const char *kind,
                                 const char *name, size_t size_bytes, const void **out_data)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return refuse(context, kind, name, l->path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return refuse(context, kind, name, l->path, "not a regular file");
    if (info.st_nlink > 1) return refuse(context, kind, name, l->path, "a hard link; copy the file instead");
    uint64_t file_bytes = (uint64_t)info.st_size;
    uint64_t length = l->has_length ? l->length : size_bytes;
    if (length != size_bytes || l->offset > file_bytes || length > file_bytes - l->offset)
        return mdot_fail(
            context->err, MDOT_MALFORMED,
            "%s: %s '%s': external data '%s': the tensor has %zu bytes, but the reference is to %llu bytes at offset "
            "%llu of a file of %llu bytes; copy the whole file beside the model again, or export the model anew",
            context->file, kind, name, l->path, size_bytes, (unsigned long long)length, (unsigned long long)l->offset,
            (unsigned long long)file_bytes);
    const void *data = fe_read_range(fd, l->offset, size_bytes, context->arena);
    if (data == NULL && errno == ENOMEM) return fe_out_of_memory(context);
    if (data == NULL)
        return refuse(context, kind, name, l->path,
                      errno == 0 ? "the file was truncated while it was read" : strerror(errno));
    ir_arena_allow(context->arena,
                   size_bytes <= SIZE_MAX / GRAPH_BYTES_PER_BYTE ? GRAPH_BYTES_PER_BYTE * size_bytes : SIZE_MAX);
    *out_data = data;
    return MDOT_OK;
}

mdot_status fe_check_external(const fe_context *context, const Onnx__TensorProto *proto)
{
    const char *output = context->options->output, *place = NULL;
    for (size_t i = 0; i < proto->n_external_data; i++)
        if (strcmp(fe_text(proto->external_data[i]->key), "location") == 0)
            place = fe_text(proto->external_data[i]->value);
    if (output == NULL || place == NULL || context->folder == NULL) return MDOT_OK;
    char *path = ir_arena_printf(context->scratch, "%s/%s", context->folder, place);
    return path != NULL ? bs_check_replaces(output, path, context->err) : fe_out_of_memory(context);
}

mdot_status fe_read_external(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, size_t size_bytes, const void **out_data)
{
    location l = {0};
    BS_TRY(parse_location(context, proto, kind, name, &l));
    if (context->folder == NULL)
        return refuse(context, kind, name, l.path, "external data requires a model that is read from a file");
    const char *reason;
    int fd = open_inside(context->folder, l.path, &reason);
    if (fd < 0) return refuse(context, kind, name, l.path, reason);
    mdot_status status = read_location(context, fd, &l, kind, name, size_bytes, out_data);
    close(fd);
    return status;
}
