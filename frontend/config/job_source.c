/* job_source.c — mdotjob.h: reads a job from what a user names: a `.job` file, an ONNX file, a config.json or a folder
 * with one, or the name of a ready job. */
#include "frontend/config/config.h"

#include "base/file.h"
#include "base/status.h"
#include "base/struct_version.h"
#include "frontend/job/job_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const bs_struct_version options_type = BS_SIZED(mdot_job_options, output);
static const bs_struct_version adapters_type = BS_SIZED(mdot_job_adapters, target_count);
static const char job_magic[] = "MDOTJOB";

static bool has_suffix(const char *path, const char *suffix)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, suffix) == 0;
}

/* Binds dimensions of a job, which has at most one: the length, by the job's name for it or as "length". Replaces
 * *job. */
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

static mdot_status refuse_adapters(const char *name, const mdot_job_options *options, mdot_error *err)
{
    if (options->adapters == NULL) return MDOT_OK;
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "%s: mdot puts adapters into the networks of configurations and of their ready jobs only; trace a "
                     "model of peft instead: `mdot export`",
                     name);
}

/* Applies the dimensions and the freezing. Takes ownership of `job`. */
static mdot_status finish(const char *name, const mdot_job_options *options, mdot_job *job, mdot_job **out_job,
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

static mdot_status load_job(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    mdot_job *job = NULL;
    mdot_status status = options->output != NULL ? bs_check_replaces(options->output, path, err) : MDOT_OK;
    if (status == MDOT_OK) status = refuse_adapters(path, options, err);
    if (status == MDOT_OK) status = mdot_job_load(path, &job, err);
    return status == MDOT_OK ? finish(path, options, job, out_job, err) : status;
}

/* `length` is the default length; 0: the family's. */
static mdot_status build_job(const char *folder, const char *name, json_object *config, int64_t length,
                             const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    fe_family family = {0};
    mdot_job *job = NULL, *longer = NULL;
    mdot_status status = fe_find_family(folder, name, config, options, &family, err);
    if (status == MDOT_OK) status = fe_build_job(&family, options, &job, err);
    if (status == MDOT_OK && length > 0 && mdot_job_with_length(job, length, &longer, NULL) == MDOT_OK) {
        mdot_job_destroy(job);
        job = longer;
    }
    if (status == MDOT_OK) status = finish(name, options, job, out_job, err);
    if (status == MDOT_OK) fe_warn_of_positions(&family, *out_job, options);
    json_object_put(family.description);
    return status;
}

static mdot_status build_from_bytes(const void *bytes, size_t size_bytes, const char *name,
                                    const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    json_object *config = NULL;
    mdot_status status = fe_parse_json(bytes, size_bytes, name, &config, err);
    char *folder = fe_library_folder();
    if (status == MDOT_OK) status = build_job(folder, name, config, 0, options, out_job, err);
    free(folder);
    json_object_put(config);
    return status;
}

static mdot_status build_from_file(const char *path, const mdot_job_options *options, mdot_job **out_job,
                                   mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_status status = options->output != NULL ? bs_check_replaces(options->output, path, err) : MDOT_OK;
    if (status == MDOT_OK) status = bs_read_file(path, &bytes, &size, err);
    if (status == MDOT_OK) status = build_from_bytes(bytes, size, path, options, out_job, err);
    free(bytes);
    return status;
}

/* A traced network in a gzip file. */
static mdot_status load_ready_job(const char *path, const char *name, const mdot_job_options *options,
                                  mdot_job **out_job, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_job *job = NULL;
    mdot_status status = refuse_adapters(name, options, err);
    if (status == MDOT_OK) status = fe_read_file(path, &bytes, &size, err);
    if (status == MDOT_OK) status = mdot_job_parse(bytes, size, &job, err);
    free(bytes);
    return status == MDOT_OK ? finish(name, options, job, out_job, err) : status;
}

static mdot_status read_ready_job(const char *name, const mdot_job_options *options, mdot_job **out_job,
                                  mdot_error *err)
{
    char *folder = fe_library_folder(), *path = NULL;
    json_object *config = NULL;
    int64_t length = 0;
    mdot_status status = fe_find_ready_job(folder, name, &config, &path, &length, err);
    if (status == MDOT_OK && path != NULL) status = load_ready_job(path, name, options, out_job, err);
    if (status == MDOT_OK && path == NULL) status = build_job(folder, name, config, length, options, out_job, err);
    json_object_put(config);
    free(path);
    free(folder);
    return status;
}

static mdot_status read_folder(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    char *file = NULL;
    if (asprintf(&file, "%s/config.json", path) < 0) return BS_OUT_OF_MEMORY(err, "%s", path);
    struct stat properties;
    mdot_status status =
        stat(file, &properties) == 0
            ? build_from_file(file, options, out_job, err)
            : mdot_fail(err, MDOT_NOT_FOUND, "%s: the folder has no config.json, which describes a Hugging Face model",
                        path);
    free(file);
    return status;
}

/* May the argument be the name of a ready job, as ours or as a hub's "meta-llama/Llama-3.1-8B", rather than a file that
 * is missing? */
static bool may_be_name(const char *path)
{
    static const char *const suffixes[] = {".onnx", ".json", ".job", ".pb", ".ort"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (has_suffix(path, suffixes[i])) return false;
    const char *slash = strchr(path, '/');
    return isalnum((unsigned char)*path) && (slash == NULL || strchr(slash + 1, '/') == NULL);
}

static mdot_status read_adapters(mdot_job_options *options, mdot_job_adapters *out_adapters, mdot_error *err)
{
    BS_TRY(bs_read_struct(&adapters_type, options->adapters, out_adapters, err));
    options->adapters = out_adapters;
    if (options->freezing != NULL && options->freezing->trained_count > 0)
        return BS_INVALID(err, "adapters are the only trained parameters: leave --trained out, or --lora");
    bool is_valid = out_adapters->rank >= 1 && out_adapters->rank <= FE_MAX_RANK && out_adapters->target_count >= 1 &&
                    out_adapters->target_count <= FE_MAX_TARGETS && out_adapters->targets != NULL;
    for (size_t i = 0; is_valid && i < out_adapters->target_count; i++) is_valid = out_adapters->targets[i] != NULL;
    if (is_valid) return MDOT_OK;
    return BS_INVALID(err, "adapters must have a rank from 1 to %d and 1 to %d targets", FE_MAX_RANK, FE_MAX_TARGETS);
}

/* `out_adapters` has the adapters of the options, if there are any. */
static mdot_status read_options(const mdot_job_options *requested, mdot_job_options *out_options,
                                mdot_job_adapters *out_adapters, mdot_error *err)
{
    *out_options = (mdot_job_options){.struct_size = sizeof *out_options};
    mdot_status status = requested != NULL ? bs_read_struct(&options_type, requested, out_options, err) : MDOT_OK;
    if (status == MDOT_OK && out_options->reserved != 0)
        status = mdot_fail(err, MDOT_INCOMPATIBLE,
                           "the options of the job reader set a field that is unknown to mdot %s", MDOT_VERSION_STRING);
    if (status == MDOT_OK && out_options->adapters != NULL) status = read_adapters(out_options, out_adapters, err);
    return status;
}

mdot_status mdot_job_read(const char *path, const mdot_job_options *requested, mdot_job **out_job, mdot_error *err)
{
    mdot_job_options options;
    mdot_job_adapters adapters;
    struct stat properties;
    if (path == NULL || out_job == NULL)
        return BS_INVALID(err, "mdot_job_read requires a path and a pointer for the job");
    BS_TRY(read_options(requested, &options, &adapters, err));
    if (has_suffix(path, ".job")) return load_job(path, &options, out_job, err);
    bool exists = stat(path, &properties) == 0;
    if (!exists && may_be_name(path)) return read_ready_job(path, &options, out_job, err);
    if (exists && S_ISDIR(properties.st_mode)) return read_folder(path, &options, out_job, err);
    if (exists && has_suffix(path, ".json")) return build_from_file(path, &options, out_job, err);
    if (has_suffix(path, ".py"))
        return BS_INVALID(err, "%s is a program in Python; `mdot export` of the Python package traces a module", path);
    BS_TRY(refuse_adapters(path, &options, err));
    return fe_read_onnx(path, &options, out_job, err);
}

mdot_status mdot_job_read_bytes(const void *bytes, size_t size_bytes, const char *name,
                                const mdot_job_options *requested, mdot_job **out_job, mdot_error *err)
{
    mdot_job_options options;
    mdot_job_adapters adapters;
    if ((bytes == NULL && size_bytes > 0) || name == NULL || out_job == NULL)
        return BS_INVALID(err, "mdot_job_read_bytes requires bytes, their name and a pointer for the job");
    BS_TRY(read_options(requested, &options, &adapters, err));
    if (size_bytes > 0 && *(const char *)bytes == '{')
        return build_from_bytes(bytes, size_bytes, name, &options, out_job, err);
    BS_TRY(refuse_adapters(name, &options, err));
    if (size_bytes >= sizeof job_magic && memcmp(bytes, job_magic, sizeof job_magic) == 0) {
        mdot_job *job = NULL;
        BS_TRY(mdot_job_parse(bytes, size_bytes, &job, err));
        return finish(name, &options, job, out_job, err);
    }
    return fe_read_onnx_bytes(bytes, size_bytes, name, &options, out_job, err);
}
