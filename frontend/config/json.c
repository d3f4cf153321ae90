/* json.c — see config.h. */
#include "frontend/config/config.h"

#include "base/file.h"
#include "base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_JSON_BYTES = 4 << 20 };

mdot_status fe_parse_json(const void *bytes, size_t size_bytes, const char *name, json_object **out_root,
                          mdot_error *err)
{
    json_tokener *tokener = json_tokener_new_ex(JSON_TOKENER_DEFAULT_DEPTH);
    if (tokener == NULL) return BS_OUT_OF_MEMORY(err, "%s", name);
    if (size_bytes > MAX_JSON_BYTES) {
        json_tokener_free(tokener);
        return mdot_fail(err, MDOT_MALFORMED, "%s: larger than %d MiB, the maximum of a configuration", name,
                         MAX_JSON_BYTES >> 20);
    }
    json_object *root = json_tokener_parse_ex(tokener, bytes, (int)size_bytes);
    enum json_tokener_error fault = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (fault == json_tokener_success && json_object_is_type(root, json_type_object)) {
        *out_root = root;
        return MDOT_OK;
    }
    json_object_put(root);
    if (fault == json_tokener_success) return mdot_fail(err, MDOT_MALFORMED, "%s: the JSON is no object", name);
    const char *reason = fault == json_tokener_continue ? "it ends too early" : json_tokener_error_desc(fault);
    return mdot_fail(err, MDOT_MALFORMED, "%s: invalid JSON at byte %zu: %s", name, end, reason);
}

/* Replaces the bytes of a gzip file, which end with the size of the content, by the content. */
static mdot_status inflate_file(const char *path, unsigned char **bytes, size_t *size_bytes, mdot_error *err)
{
    enum { AUTOMATIC_GZIP = 15 + 16, TAIL = 4, LEAST = 18 };
    if (*size_bytes < LEAST) return mdot_fail(err, MDOT_MALFORMED, "%s: the gzip file is damaged", path);
    const unsigned char *tail = *bytes + *size_bytes - TAIL;
    uint32_t size = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
    if (size > MAX_JSON_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "%s: its content is larger than %d MiB", path, MAX_JSON_BYTES >> 20);
    unsigned char *content = malloc(size + 1);
    z_stream stream = {.next_in = *bytes, .avail_in = (uInt)*size_bytes, .next_out = content, .avail_out = size};
    int result = content != NULL ? inflateInit2(&stream, AUTOMATIC_GZIP) : Z_MEM_ERROR;
    if (result == Z_OK) {
        result = inflate(&stream, Z_FINISH);
        inflateEnd(&stream);
    }
    if (result == Z_STREAM_END && stream.total_out == size) {
        free(*bytes);
        *bytes = content;
        *size_bytes = size;
        return MDOT_OK;
    }
    free(content);
    if (result == Z_MEM_ERROR) return BS_OUT_OF_MEMORY(err, "%s", path);
    return mdot_fail(err, MDOT_MALFORMED, "%s: the gzip file is damaged", path);
}

mdot_status fe_read_file(const char *path, unsigned char **bytes, size_t *size_bytes, mdot_error *err)
{
    BS_TRY(bs_read_file_within(path, MAX_JSON_BYTES, bytes, size_bytes, err));
    if (*size_bytes < 2 || (*bytes)[0] != 0x1f || (*bytes)[1] != 0x8b) return MDOT_OK;
    return inflate_file(path, bytes, size_bytes, err);
}

mdot_status fe_read_json(const char *path, json_object **out_root, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_status status = fe_read_file(path, &bytes, &size, err);
    if (status == MDOT_OK) status = fe_parse_json(bytes, size, path, out_root, err);
    free(bytes);
    return status;
}

json_object *fe_member(json_object *object, const char *key)
{
    json_object *member = NULL;
    if (!json_object_is_type(object, json_type_object)) return NULL;
    return json_object_object_get_ex(object, key, &member) ? member : NULL;
}

const char *fe_text(json_object *object, const char *key)
{
    json_object *member = fe_member(object, key);
    return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : NULL;
}

bool fe_add_size(fe_sizes *sizes, const char *name, double value)
{
    if (sizes->count == FE_MAX_SIZES) return false;
    sizes->item[sizes->count].name = name;
    sizes->item[sizes->count++].value = value;
    return true;
}

/* A number, or the name of a size. */
static bool read_factor(const char **cursor, const fe_sizes *sizes, double *out_value)
{
    const char *start = *cursor;
    if (isdigit((unsigned char)*start)) {
        double value = 0, unit = 1;
        for (; isdigit((unsigned char)**cursor); ++*cursor) value = 10 * value + (**cursor - '0');
        if (**cursor == '.') {
            for (++*cursor; isdigit((unsigned char)**cursor); ++*cursor) value += (unit /= 10) * (**cursor - '0');
        }
        *out_value = value;
        return true;
    }
    while (isalnum((unsigned char)**cursor) || **cursor == '_') ++*cursor;
    size_t length = (size_t)(*cursor - start);
    for (size_t i = 0; i < sizes->count; i++) {
        if (strncmp(sizes->item[i].name, start, length) != 0 || sizes->item[i].name[length] != '\0') continue;
        *out_value = sizes->item[i].value;
        return length > 0;
    }
    return false;
}

bool fe_compute(const char *formula, const fe_sizes *sizes, double *out_value)
{
    double sum = 0;
    const char *cursor = formula;
    do {
        double sign = *cursor == '-' ? -1 : 1, factor, product;
        cursor += cursor > formula || *cursor == '-'; /* the sign */
        if (!read_factor(&cursor, sizes, &product)) return false;
        while (*cursor == '*' || *cursor == '/') {
            bool divides = *cursor++ == '/';
            if (!read_factor(&cursor, sizes, &factor)) return false;
            product = divides ? product / factor : product * factor;
        }
        sum += sign * product;
    } while (*cursor == '+' || *cursor == '-');
    *out_value = sum;
    return *cursor == '\0' && isfinite(sum);
}
