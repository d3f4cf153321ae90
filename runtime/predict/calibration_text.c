/* calibration_text.c — a calibration as human-readable text. docs/reference/formats/cal.md specifies the format, and
 * tests/formats has a second reader, which is written from the specification alone.
 *
 * The fits follow from the steps. The file is untrusted input. Therefore every line is checked, and sizes and numbers
 * are bounded.
 */
#include "base/file.h"
#include "base/text.h"
#include "runtime/core/core.h"
#include "runtime/predict/calibration.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 24 }; /* more than the text for RT_CALIBRATION_MAX_JOBS jobs and all anchors */
static const char magic[] = "mdot-calibration", version[] = "5";

typedef struct reader {
    char *at; /* position in a text copy, which is split in place */
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
static bool read_number(reader *r, char **text, double minimum, double maximum, double *out)
{
    const char *end;
    double value = bs_number_read(*text, &end);
    bool is_ended = *end == ' ' || *end == '\0';
    if (end == *text || !is_ended || !(value >= minimum && value <= maximum))
        return refuse(r, "must have a number from %g to %g in each numeric column", minimum, maximum);
    *text += end - *text + (*end == ' ');
    *out = value;
    return true;
}

static bool read_whole(reader *r, char **text, double maximum, size_t *out)
{
    double value = 0;
    if (!read_number(r, text, 0, maximum, &value)) return false;
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

static bool read_count(reader *r, char **text, size_t *out)
{
    return read_whole(r, text, RT_CALIBRATION_MAX_ROWS, out);
}

/* Reads 16 hexadecimal digits and the blank or line end after them. */
static bool read_hash(reader *r, char **text, uint64_t *out)
{
    enum { DIGITS = 16 };
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;
    for (int i = 0; i < DIGITS; i++, ++*text) {
        const char *digit = **text != '\0' ? strchr(digits, **text) : NULL;
        if (digit == NULL) return refuse(r, "must have 16 hexadecimal digits for a job and for options");
        value = value << 4 | (uint64_t)(digit - digits);
    }
    if (**text != ' ' && **text != '\0') return refuse(r, "must have 16 hexadecimal digits for a job and for options");
    *text += **text == ' ';
    *out = value;
    return true;
}

static bool is_read(reader *r, const char *rest) { return *rest == '\0' || refuse(r, "has extra text at its end"); }

static bool begins_with(const reader *r, const char *word) { return strncmp(r->at, word, strlen(word)) == 0; }

static size_t count_lines(const char *text, const char *word)
{
    size_t count = 0, length = strlen(word);
    for (const char *line = text;; line++) {
        count += strncmp(line, word, length) == 0;
        line = strchr(line, '\n');
        if (line == NULL) return count;
    }
}

static bool fail_memory(reader *r)
{
    r->status = mdot_fail(r->err, MDOT_OUT_OF_MEMORY, NULL);
    return false;
}

static bool read_job(reader *r, mdot_calibration *c)
{
    char *rest = NULL;
    rt_job_identity *job = &c->jobs[c->job_count];
    if (!next_line(r, "job", &rest) || !read_hash(r, &rest, &job->digest)) return false;
    if (job->digest == 0 || (c->job_count > 0 && job->digest <= job[-1].digest))
        return refuse(r, "must have a larger digest than the job before");
    for (int k = 0; k < RT_WORK_CLASSES; k++) {
        size_t share = 0;
        if (!read_whole(r, &rest, RT_SHARE_UNITS, &share)) return false;
        job->share[k] = (float)((double)share / RT_SHARE_UNITS);
    }
    size_t waits = 0;
    if (*rest != '\0' && !read_whole(r, &rest, 1, &waits)) return false;
    job->waits = waits == 1;
    c->job_count++;
    return is_read(r, rest);
}

static bool read_jobs(reader *r, mdot_calibration *c)
{
    size_t count = count_lines(r->at, "job ");
    if (count > RT_CALIBRATION_MAX_JOBS)
        return refuse(r, "begins more jobs than the limit of %d", RT_CALIBRATION_MAX_JOBS);
    c->jobs = calloc(count + 1, sizeof *c->jobs);
    if (c->jobs == NULL) return fail_memory(r);
    while (begins_with(r, "job "))
        if (!read_job(r, c)) return false;
    return true;
}

static bool read_step_job(reader *r, char **text, const mdot_calibration *c, rt_step *step)
{
    step->job = RT_NO_JOB;
    if (strncmp(*text, "- ", 2) == 0) {
        *text += 2;
        return true;
    }
    uint64_t digest;
    if (!read_hash(r, text, &digest)) return false;
    step->job = rt_calibration_find_job(c, digest);
    if (step->job == RT_NO_JOB) return refuse(r, "names a job that has no line");
    step->share = c->jobs[step->job].share;
    return true;
}

static bool read_anchor(reader *r, const mdot_calibration *c, rt_anchor *out)
{
    enum { MOST_CHOICE = 64, MOST_TORCH = 9999, MOST_GPUS = 1 << 16, MOST_BATCH = 1 << 24 };
    char *rest = NULL;
    size_t precision, layout, torch, gpus, mode;
    rt_step *step = &out->step;
    if (!next_line(r, "step", &rest) || !read_step_job(r, &rest, c, step) ||
        !read_whole(r, &rest, MOST_CHOICE, &precision) || !read_whole(r, &rest, MOST_CHOICE, &layout) ||
        !read_whole(r, &rest, MOST_TORCH, &torch) || !read_whole(r, &rest, MOST_GPUS, &gpus) ||
        !read_whole(r, &rest, MOST_CHOICE, &mode) || !read_hash(r, &rest, &step->others) ||
        !read_number(r, &rest, 1, MOST_BATCH, &step->batch) || !read_number(r, &rest, 0, 1, &step->host_share))
        return false;
    step->precision = (uint32_t)precision;
    step->layout = (uint32_t)layout;
    step->torch = (uint32_t)torch;
    step->gpu_count = (uint32_t)gpus;
    step->mode = (uint32_t)mode;
    for (int q = 0; q < RT_QUANTITIES; q++)
        if (!read_count(r, &rest, &out->row_count[q]) ||
            !read_number(r, &rest, RT_CALIBRATION_LEAST_DEVIATION, RT_CALIBRATION_MOST_DEVIATION,
                         &step->deviation[q]) ||
            !read_number(r, &rest, -RT_CALIBRATION_MOST_RESIDUAL, RT_CALIBRATION_MOST_RESIDUAL, &out->residual[q]) ||
            !read_number(r, &rest, 0, RT_CALIBRATION_MOST_OWN, &out->own[q]))
            return false;
    return is_read(r, rest);
}

static bool read_scales(reader *r, const char *word, rt_fit *fit)
{
    char *rest = NULL;
    return next_line(r, word, &rest) && read_number(r, &rest, 1e-6, RT_CALIBRATION_MOST_GENERAL, &fit->general) &&
           read_number(r, &rest, 0, 1, &fit->idle) && is_read(r, rest);
}

static bool read_gpu(reader *r, mdot_calibration *c)
{
    char *rest = NULL;
    if (!next_line(r, "gpu", &rest)) return false;
    if (c->gpu_count == RT_CALIBRATION_MAX_GPUS) return refuse(r, "exceeds the limit of GPUs");
    rt_calibration_gpu *gpu = &c->gpus[c->gpu_count];
    for (int precision_class = 0; precision_class < RT_PRECISION_CLASSES; precision_class++)
        if (!read_count(r, &rest, &gpu->row_count[precision_class])) return false;
    size_t is_new = 0;
    if (!read_count(r, &rest, &gpu->several_row_count) || !read_whole(r, &rest, 1, &is_new) ||
        !read_name(r, rest, gpu->name, sizeof gpu->name))
        return false;
    gpu->is_new = is_new == 1;
    for (size_t i = 0; i < c->gpu_count; i++)
        if (strcmp(c->gpus[i].name, gpu->name) == 0) return refuse(r, "repeats a GPU");
    c->gpu_count++;
    if (!read_scales(r, "time", &gpu->fit[RT_QUANTITY_TIME]) ||
        !read_scales(r, "memory", &gpu->fit[RT_QUANTITY_MEMORY]))
        return false;
    gpu->anchors = calloc(RT_CALIBRATION_MAX_ANCHORS, sizeof *gpu->anchors);
    if (gpu->anchors == NULL) return fail_memory(r);
    while (begins_with(r, "step ")) {
        if (gpu->anchor_count == RT_CALIBRATION_MAX_ANCHORS)
            return refuse(r, "begins more steps of a GPU than the limit of %d", RT_CALIBRATION_MAX_ANCHORS);
        rt_anchor *anchor = &gpu->anchors[gpu->anchor_count];
        if (!read_anchor(r, c, anchor)) return false;
        anchor->step.is_new_gpu = gpu->is_new;
        if (gpu->anchor_count > 0 && anchor->step.job < anchor[-1].step.job)
            return refuse(r, "is out of order: steps are ordered by job");
        gpu->anchor_count++;
    }
    return true;
}

static bool read_all(reader *r, mdot_calibration *c)
{
    char *rest = NULL;
    if (!next_line(r, magic, &rest)) return false;
    if (strcmp(rest, version) != 0) {
        r->status = mdot_fail(r->err, MDOT_INCOMPATIBLE,
                              "the calibration has format version \"%.16s\"; this mdot reads version %s: make it again "
                              "from the measured steps with `mdot calibrate`",
                              rest, version);
        return false;
    }
    if (!next_line(r, "predictor", &rest) || !read_name(r, rest, c->predictor, sizeof c->predictor)) return false;
    if (!next_line(r, "rows", &rest) || !read_count(r, &rest, &c->row_count) ||
        !read_count(r, &rest, &c->memory_row_count) || !is_read(r, rest))
        return false;
    if (!read_jobs(r, c)) return false;
    while (*r->at != '\0')
        if (!read_gpu(r, c)) return false;
    r->status = rt_calibration_fit(c, false, r->err);
    return r->status == MDOT_OK;
}

mdot_status mdot_calibration_parse(const void *bytes, size_t size_bytes, mdot_calibration **out_calibration,
                                   mdot_error *err)
{
    if ((bytes == NULL && size_bytes > 0) || out_calibration == NULL)
        return BS_INVALID(err, "mdot_calibration_parse: bytes or out_calibration is NULL");
    if (size_bytes > MAX_BYTES)
        return mdot_fail(err, MDOT_MALFORMED, "a calibration of %zu bytes exceeds the size limit", size_bytes);
    if (size_bytes > 0 && memchr(bytes, '\0', size_bytes) != NULL)
        return mdot_fail(err, MDOT_MALFORMED, "the calibration contains a zero byte; it must be text");
    char *copy = malloc(size_bytes + 1);
    mdot_calibration *c = calloc(1, sizeof *c);
    mdot_status status = MDOT_OK;
    if (copy == NULL || c == NULL) {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    } else {
        if (size_bytes > 0) memcpy(copy, bytes, size_bytes);
        copy[size_bytes] = '\0';
        reader r = {.at = copy, .err = err};
        if (!read_all(&r, c)) status = r.status;
    }
    free(copy);
    if (status != MDOT_OK) {
        rt_calibration_free(c);
        return status;
    }
    rt_handle_register(c, RT_CALIBRATION);
    *out_calibration = c;
    return MDOT_OK;
}

mdot_status mdot_calibration_load(const char *path, mdot_calibration **out_calibration, mdot_error *err)
{
    if (path == NULL || out_calibration == NULL)
        return BS_INVALID(err, "mdot_calibration_load: path or out_calibration is NULL");
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    mdot_error reason = {0};
    BS_TRY(bs_read_file_within(path, MAX_BYTES, &bytes, &size_bytes, err));
    mdot_status status = mdot_calibration_parse(bytes, size_bytes, out_calibration, &reason);
    free(bytes);
    return status == MDOT_OK ? status : mdot_fail(err, status, "%s: %s", path, reason.message);
}

static const char *digits(double value, char out[BS_NUMBER_BYTES]) { return bs_number_print(value, 9, out); }

static void write_anchor(const mdot_calibration *c, const rt_anchor *a, FILE *file)
{
    char text[BS_NUMBER_BYTES];
    const rt_step *step = &a->step;
    if (step->job == RT_NO_JOB)
        fprintf(file, "step -");
    else
        fprintf(file, "step %016" PRIx64, c->jobs[step->job].digest);
    fprintf(file, " %u %u %u %u %u %016" PRIx64, (unsigned)step->precision, (unsigned)step->layout,
            (unsigned)step->torch, (unsigned)step->gpu_count, (unsigned)step->mode, step->others);
    fprintf(file, " %s", digits(step->batch, text));
    fprintf(file, " %s", digits(step->host_share, text));
    for (int q = 0; q < RT_QUANTITIES; q++) {
        fprintf(file, " %zu %s", a->row_count[q], digits(step->deviation[q], text));
        fprintf(file, " %s", digits(a->residual[q], text));
        fprintf(file, " %s", digits(a->own[q], text));
    }
    fputc('\n', file);
}

static void write_scales(const char *word, const rt_fit *fit, FILE *file)
{
    char a[BS_NUMBER_BYTES], b[BS_NUMBER_BYTES];
    fprintf(file, "%s %s %s\n", word, digits(fit->general, a), digits(fit->idle, b));
}

static void write_all(const mdot_calibration *c, FILE *file)
{
    fprintf(file, "%s %s\npredictor %s\nrows %zu %zu\n", magic, version, c->predictor, c->row_count,
            c->memory_row_count);
    for (size_t j = 0; j < c->job_count; j++) {
        fprintf(file, "job %016" PRIx64, c->jobs[j].digest);
        for (int k = 0; k < RT_WORK_CLASSES; k++) fprintf(file, " %.0f", (double)c->jobs[j].share[k] * RT_SHARE_UNITS);
        fputs(c->jobs[j].waits ? " 1\n" : "\n", file);
    }
    for (size_t g = 0; g < c->gpu_count; g++) {
        const rt_calibration_gpu *gpu = &c->gpus[g];
        fprintf(file, "gpu %zu %zu %zu %d %s\n", gpu->row_count[RT_PRECISION_FULL], gpu->row_count[RT_PRECISION_HALF],
                gpu->several_row_count, gpu->is_new, gpu->name);
        write_scales("time", &gpu->fit[RT_QUANTITY_TIME], file);
        write_scales("memory", &gpu->fit[RT_QUANTITY_MEMORY], file);
        for (size_t i = 0; i < gpu->anchor_count; i++) write_anchor(c, &gpu->anchors[i], file);
    }
}

mdot_status mdot_calibration_save(const mdot_calibration *calibration, const char *path, mdot_error *err)
{
    if (calibration == NULL || path == NULL)
        return BS_INVALID(err, "mdot_calibration_save: calibration or path is NULL");
    BS_TRY(rt_handle_check(calibration, RT_CALIBRATION, __func__, err));
    bs_memstream stream;
    size_t size_bytes = 0;
    if (bs_memstream_open(&stream)) write_all(calibration, stream.file);
    char *text = bs_memstream_close(&stream, &size_bytes);
    mdot_status status = text != NULL ? bs_write_file(path, text, size_bytes, err) : BS_OUT_OF_MEMORY(err, "%s", path);
    free(text);
    return status;
}
