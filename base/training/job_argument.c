/* job_argument.c — reads training jobs for the subcommands, from ONNX or from a .job file, with warnings on stderr. */
#include "base/training/job_argument.h"
#include "base/file.h"
#include "mdot/mdotjob.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WARNINGS_SHOWN = 20 };

typedef struct warnings {
    const char *command;
    size_t shown;
} warnings;

static void show_warning(void *user, const char *message)
{
    warnings *w = user;
    if (w->shown < MAX_WARNINGS_SHOWN) cli_message(w->command, "warning: %s", message);
    if (w->shown == MAX_WARNINGS_SHOWN) cli_message(w->command, "further warnings are omitted");
    w->shown++;
}

static bool is_job_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".job") == 0;
}

static const char job_magic[] = "MDOTJOB", stream_name[] = "standard input";

static bool begins_as_job(const unsigned char *bytes, size_t size)
{
    return size >= sizeof job_magic && memcmp(bytes, job_magic, sizeof job_magic) == 0;
}

/* Reads stdin up to a size limit: the first bytes select the limit of mdot_job_load (a .job file) or of protobuf (a
 * model). The caller frees the bytes. */
static mdot_status read_stream(unsigned char **out_bytes, size_t *out_size, mdot_error *err)
{
    static const size_t most_of_job = (size_t)1 << 28, most_of_model = (size_t)1 << 31;
    unsigned char *bytes = NULL;
    size_t size = 0, capacity = 0, limit = most_of_model;
    mdot_status status = MDOT_OK;
    for (size_t read = 1; read > 0 && status == MDOT_OK; size += read) {
        if (size == capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            unsigned char *larger = realloc(bytes, capacity);
            if (larger == NULL) {
                status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
                break;
            }
            bytes = larger;
        }
        read = fread(bytes + size, 1, capacity - size, stdin);
        if (begins_as_job(bytes, size + read)) limit = most_of_job;
        if (size + read > limit)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: larger than %zu MiB, the maximum size of a %s", stream_name,
                               limit >> 20, limit == most_of_job ? "job file" : "ONNX file");
    }
    if (status == MDOT_OK && ferror(stdin) != 0) status = mdot_fail(err, MDOT_IO, "cannot read standard input");
    if (status != MDOT_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_size = size;
    return MDOT_OK;
}

/* Applies --dim to a job from a .job file, which has at most one dimension: the length, by the file's name for it or as
 * "length". Replaces *job. */
static mdot_status bind_length(const char *name, const mdot_job_options *options, mdot_job **job, mdot_error *err)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(*job, &info);
    for (size_t i = 0; i < options->dim_count; i++) {
        const mdot_dim_binding *dim = &options->dims[i];
        bool is_length =
            info.length > 0 && (strcmp(dim->name, "length") == 0 || strcmp(dim->name, info.length_name) == 0);
        if (!is_length && info.length > 0)
            return BS_INVALID(err, "%s: the .job file has no dimension '%s' to bind; it has '%s'", name, dim->name,
                              info.length_name);
        if (!is_length)
            return BS_INVALID(err, "%s: a .job file has no dimension '%s' to bind; that was done when it was made",
                              name, dim->name);
        if (dim->same_as != NULL)
            return BS_INVALID(err, "%s: dimension '%s' of a .job file must be a number", name, dim->name);
        mdot_job *bound = NULL;
        mdot_error reason = {0};
        mdot_status status = mdot_job_with_length(*job, dim->value, &bound, &reason);
        if (status != MDOT_OK) return mdot_fail(err, status, "%s: %s", name, reason.message);
        mdot_job_destroy(*job);
        *job = bound;
        mdot_job_get_info(*job, &info);
    }
    return MDOT_OK;
}

/* Applies --dim, --frozen and --trained to a job from a .job file. Takes ownership of `job`. */
static mdot_status finish_loaded(const char *name, const mdot_job_options *options, mdot_job *job, mdot_job **out_job,
                                 mdot_error *err)
{
    mdot_status bound = bind_length(name, options, &job, err);
    if (bound != MDOT_OK) {
        mdot_job_destroy(job);
        return bound;
    }
    if (options->freezing == NULL) {
        *out_job = job;
        return MDOT_OK;
    }
    mdot_error reason = {0};
    mdot_status status = mdot_job_freeze(job, options->freezing, out_job, &reason);
    mdot_job_destroy(job);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", name, reason.message);
}

/* Reads a job from stdin, which can be read only once. The first bytes distinguish a .job file from a model. */
static mdot_status read_job_stream(const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_status status = read_stream(&bytes, &size, err);
    if (status != MDOT_OK) return status;
    bool is_job = begins_as_job(bytes, size);
    mdot_job *job = NULL;
    if (size == 0)
        status = mdot_fail(err, MDOT_MALFORMED, "%s: the file is empty", stream_name);
    else
        status = is_job ? mdot_job_parse(bytes, size, &job, err)
                        : mdot_job_read_bytes(bytes, size, stream_name, options, &job, err);
    free(bytes);
    if (status == MDOT_OK && is_job) return finish_loaded(stream_name, options, job, out_job, err);
    if (status == MDOT_OK) *out_job = job;
    return status;
}

static mdot_status load_job(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    mdot_job *job = NULL;
    mdot_status status = options->output != NULL ? bs_check_replaces(options->output, path, err) : MDOT_OK;
    if (status == MDOT_OK) status = mdot_job_load(path, &job, err);
    return status == MDOT_OK ? finish_loaded(path, options, job, out_job, err) : status;
}

mdot_status cli_read_job(const char *command, const char *path, const cli_reading *r, mdot_job **out_job,
                         mdot_error *err)
{
    const mdot_job_freezing freezing = {sizeof freezing, r->frozen.item, r->frozen.count, r->trained.item,
                                        r->trained.count};
    warnings shown = {.command = command};
    const mdot_job_options options = {.struct_size = sizeof options,
                                      .dims = r->dims.item,
                                      .dim_count = r->dims.count,
                                      .warning = r->quiet ? NULL : show_warning,
                                      .user = &shown,
                                      .keep_names = r->keep_names ? 1 : 0,
                                      .output = r->output,
                                      .freezing =
                                          freezing.frozen_count + freezing.trained_count > 0 ? &freezing : NULL};
    if (strcmp(path, "-") == 0) return read_job_stream(&options, out_job, err);
    return is_job_file(path) ? load_job(path, &options, out_job, err) : mdot_job_read(path, &options, out_job, err);
}

double cli_tokens_per_sample(const mdot_job *job, const mdot_job_info *info)
{
    bool looks_up = false;
    int64_t queries = 0;
    for (size_t i = 0; i < info->operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        bool picks = (op.traits.traits & MDOT_TRAIT_PICKS) != 0;
        looks_up = looks_up || (picks && op.parameters + op.frozen_parameters > 0);
        if (queries == 0) queries = op.setting[MDOT_SETTING_QUERIES];
    }
    return looks_up ? (double)queries : 0;
}

int64_t cli_job_batch(const mdot_job_info *info) { return info->batch > 0 ? info->batch : 1; }
