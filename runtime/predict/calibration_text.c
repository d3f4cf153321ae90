/* calibration_text.c — a calibration as human-readable text:
 *
 *     mdot-calibration 2
 *     predictor NAME
 *     rows COUNT
 *     part NAME MEAN-SHARE SLOPE           each of RT_CALIBRATION_PART_MAP, in its order
 *     others FACTOR INTERVAL               GPUs that have no line of their own
 *     several ROWS FACTOR INTERVAL         on top, for steps of several GPUs
 *     gpu ROWS FACTOR INTERVAL ROWS FACTOR INTERVAL NAME
 *                                          one for each GPU: full precision, then half precision
 *
 * The file is untrusted input. Therefore every line is checked, and sizes and numbers are bounded.
 */
#include "base/file.h"
#include "base/memstream.h"
#include "base/number.h"
#include "base/printable.h"
#include "runtime/core/core.h"
#include "runtime/predict/calibration.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 16 };
static const char magic[] = "mdot-calibration", version[] = "2";

static const char *const part_names[RT_CALIBRATION_PARTS] = {
#define NAME(id, text) text,
    RT_CALIBRATION_PART_MAP(NAME)
#undef NAME
};

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    char *at; /* position in a copy of the text, which is split in place */
    int line;
    mdot_error *err;
    mdot_status status;
} reader;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
refuse(reader *r, const char *format, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    r->status = mdot_fail(r->err, MDOT_MALFORMED, "line %d of the calibration %s", r->line, what);
    return false;
}

/* Reads the next line, which must begin with `word` and a blank. The newline becomes a NUL; *out_rest follows the
 * blank. */
static bool next_line(reader *r, const char *word, char **out_rest)
{
    char *end = strchr(r->at, '\n');
    size_t length = strlen(word);
    r->line++;
    if (end == NULL) return refuse(r, "is missing; it begins with \"%s\"", word);
    *end = '\0';
    if (strncmp(r->at, word, length) != 0 || r->at[length] != ' ') return refuse(r, "must begin with \"%s\"", word);
    *out_rest = r->at + length + 1;
    r->at = end + 1;
    return true;
}

/* Reads a number and the blank or line end after it. */
static bool read_number(reader *r, char **text, double least, double most, double *out)
{
    const char *end;
    double value = bs_number_read(*text, &end);
    bool is_ended = *end == ' ' || *end == '\0';
    if (end == *text || !is_ended || !(value >= least && value <= most))
        return refuse(r, "must have a number from %g to %g in each numeric column", least, most);
    *text += end - *text + (*end == ' ');
    *out = value;
    return true;
}

static bool read_count(reader *r, char **text, size_t *out)
{
    double value = 0;
    if (!read_number(r, text, 0, RT_CALIBRATION_MAX_ROWS, &value)) return false;
    if (value != floor(value)) return refuse(r, "has a fraction as a count, which must be a whole number");
    *out = (size_t)value;
    return true;
}

static bool read_name(reader *r, const char *text, char *out, size_t capacity)
{
    size_t length = strlen(text);
    if (length == 0 || length >= capacity) return refuse(r, "must have a name of 1 to %zu bytes", capacity - 1);
    if (!bs_is_printable(text)) return refuse(r, "has a name with unprintable characters");
    memcpy(out, text, length + 1);
    return true;
}

static bool read_correction(reader *r, char **text, rt_calibrated *out)
{
    return read_number(r, text, 1 / RT_CALIBRATION_MOST_FACTOR, RT_CALIBRATION_MOST_FACTOR, &out->factor) &&
           read_number(r, text, RT_CALIBRATION_LEAST_INTERVAL, RT_CALIBRATION_MOST_INTERVAL, &out->interval);
}

static bool read_measured(reader *r, char **text, rt_calibrated *out)
{
    return read_count(r, text, &out->row_count) && read_correction(r, text, out);
}

static bool is_read(reader *r, const char *rest)
{
    return *rest == '\0' || refuse(r, "has extra text at its end");
}

static bool read_gpu(reader *r, mdot_calibration *c)
{
    char *rest;
    if (!next_line(r, "gpu", &rest)) return false;
    if (c->gpu_count == RT_CALIBRATION_MAX_GPUS) return refuse(r, "exceeds the limit of GPUs");
    rt_calibration_gpu *gpu = &c->gpus[c->gpu_count];
    for (int precision_class = 0; precision_class < RT_PRECISION_CLASSES; precision_class++)
        if (!read_measured(r, &rest, &gpu->in[precision_class])) return false;
    if (!read_name(r, rest, gpu->name, sizeof gpu->name)) return false;
    for (size_t i = 0; i < c->gpu_count; i++)
        if (strcmp(c->gpus[i].name, gpu->name) == 0) return refuse(r, "repeats a GPU");
    c->gpu_count++;
    return true;
}

static bool read_all(reader *r, mdot_calibration *c)
{
    char *rest;
    if (!next_line(r, magic, &rest)) return false;
    if (strcmp(rest, version) != 0) {
        r->status =
            mdot_fail(r->err, MDOT_INCOMPATIBLE,
                      "the calibration has format version \"%.16s\"; this mdot reads version %s", rest, version);
        return false;
    }
    if (!next_line(r, "predictor", &rest) || !read_name(r, rest, c->predictor, sizeof c->predictor)) return false;
    if (!next_line(r, "rows", &rest) || !read_count(r, &rest, &c->row_count) || !is_read(r, rest)) return false;
    for (int part = 0; part < RT_CALIBRATION_PARTS; part++) {
        size_t length = strlen(part_names[part]);
        if (!next_line(r, "part", &rest)) return false;
        if (strncmp(rest, part_names[part], length) != 0 || rest[length] != ' ')
            return refuse(r, "must describe part %s", part_names[part]);
        rest += length + 1;
        if (!read_number(r, &rest, 0, 1, &c->mean_share[part]) ||
            !read_number(r, &rest, -RT_CALIBRATION_MOST_SLOPE, RT_CALIBRATION_MOST_SLOPE, &c->slope[part]) ||
            !is_read(r, rest))
            return false;
    }
    if (!next_line(r, "others", &rest) || !read_correction(r, &rest, &c->others) || !is_read(r, rest)) return false;
    if (!next_line(r, "several", &rest) || !read_measured(r, &rest, &c->several) || !is_read(r, rest)) return false;
    while (*r->at != '\0')
        if (!read_gpu(r, c)) return false;
    return true;
}

mdot_status mdot_calibration_parse(const void *bytes, size_t size_bytes, mdot_calibration **out_calibration,
                                   mdot_error *err)
{
    if ((bytes == NULL && size_bytes > 0) || out_calibration == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_calibration_parse: bytes or out_calibration is NULL");
    if (size_bytes > MAX_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "a calibration of %zu bytes exceeds the size limit", size_bytes);
    if (size_bytes > 0 && memchr(bytes, '\0', size_bytes) != NULL)
        return mdot_fail(err, MDOT_MALFORMED, "the calibration contains a zero byte; it must be text");
    char *copy = malloc(size_bytes + 1);
    mdot_calibration *c = calloc(1, sizeof *c);
    mdot_status status = MDOT_OK;
    if (copy == NULL || c == NULL) {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a calibration");
    } else {
        if (size_bytes > 0) memcpy(copy, bytes, size_bytes);
        copy[size_bytes] = '\0';
        reader r = {.at = copy, .err = err};
        if (!read_all(&r, c)) status = r.status;
    }
    free(copy);
    if (status != MDOT_OK) {
        free(c);
        return status;
    }
    rt_handle_register(c, RT_CALIBRATION);
    *out_calibration = c;
    return MDOT_OK;
}

mdot_status mdot_calibration_load(const char *path, mdot_calibration **out_calibration, mdot_error *err)
{
    if (path == NULL || out_calibration == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_calibration_load: path or out_calibration is NULL");
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    mdot_error reason = {0};
    mdot_status status = bs_read_file_within(path, MAX_BYTES, &bytes, &size_bytes, err);
    if (status != MDOT_OK) return status;
    status = mdot_calibration_parse(bytes, size_bytes, out_calibration, &reason);
    free(bytes);
    return status == MDOT_OK ? status : mdot_fail(err, status, "%s: %s", path, reason.message);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static const char *digits(double value, char out[BS_NUMBER_BYTES])
{
    return bs_number_print(value, 9, out);
}

static void write_measured(const rt_calibrated *c, FILE *file)
{
    char a[BS_NUMBER_BYTES], b[BS_NUMBER_BYTES];
    fprintf(file, " %zu %s %s", c->row_count, digits(c->factor, a), digits(c->interval, b));
}

static void write_all(const mdot_calibration *c, FILE *file)
{
    char a[BS_NUMBER_BYTES], b[BS_NUMBER_BYTES];
    fprintf(file, "%s %s\npredictor %s\nrows %zu\n", magic, version, c->predictor, c->row_count);
    for (int part = 0; part < RT_CALIBRATION_PARTS; part++)
        fprintf(file, "part %s %s %s\n", part_names[part], digits(c->mean_share[part], a), digits(c->slope[part], b));
    fprintf(file, "others %s %s\n", digits(c->others.factor, a), digits(c->others.interval, b));
    fprintf(file, "several");
    write_measured(&c->several, file);
    fprintf(file, "\n");
    for (size_t i = 0; i < c->gpu_count; i++) {
        fprintf(file, "gpu");
        for (int precision_class = 0; precision_class < RT_PRECISION_CLASSES; precision_class++)
            write_measured(&c->gpus[i].in[precision_class], file);
        fprintf(file, " %s\n", c->gpus[i].name);
    }
}

mdot_status mdot_calibration_save(const mdot_calibration *calibration, const char *path, mdot_error *err)
{
    if (calibration == NULL || path == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "mdot_calibration_save: calibration or path is NULL");
    mdot_status status = rt_handle_check(calibration, RT_CALIBRATION, __func__, err);
    if (status != MDOT_OK) return status;
    bs_memstream stream;
    size_t size_bytes = 0;
    if (bs_memstream_open(&stream)) write_all(calibration, stream.file);
    char *text = bs_memstream_close(&stream, &size_bytes);
    status = text != NULL ? bs_write_file(path, text, size_bytes, err)
                          : mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out while writing %s", path);
    free(text);
    return status;
}
