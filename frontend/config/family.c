/* family.c — see config.h. */
#include "frontend/config/config.h"

#include "base/status.h"
#include "base/suggest.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE 0x1p40
#define REMEDY "; trace the model with Python instead: `mdot export`"

/* A whole number from 1 to 2^40, or the number of members of an object, for example of id2label. */
static mdot_status read_size(const char *path, const char *key, json_object *value, double *out_size, mdot_error *err)
{
    enum json_type type = json_object_get_type(value);
    double size = type == json_type_int || type == json_type_double ? json_object_get_double(value) : NAN;
    if (type == json_type_object) size = json_object_object_length(value);
    *out_size = size;
    if (size >= 1 && size <= MAX_SIZE && size == floor(size)) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED, "%s: %s is %.60s; it must be a whole number from 1 to 2^40", path, key,
                     json_object_to_json_string(value));
}

static mdot_status read_sizes(fe_family *family, json_object *config, mdot_error *err)
{
    json_object *rows = fe_member(family->description, "sizes");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i), *keys = json_object_array_get_idx(row, 1);
        const char *name = json_object_get_string(json_object_array_get_idx(row, 0));
        const char *formula = json_object_get_string(json_object_array_get_idx(row, 2)), *key = NULL;
        json_object *value = NULL;
        double size = 0;
        for (size_t k = 0; k < json_object_array_length(keys) && value == NULL; k++) {
            key = json_object_get_string(json_object_array_get_idx(keys, k));
            value = fe_member(config, key);
        }
        mdot_status status = MDOT_OK;
        if (value != NULL) {
            status = read_size(family->path, key, value, &size, err);
        } else if (*formula == '\0') {
            status = mdot_fail(err, MDOT_MALFORMED, "%s: %s is missing", family->path,
                               json_object_get_string(json_object_array_get_idx(keys, 0)));
        } else if (!fe_compute(formula, &family->sizes, &size) || size < 1 || size != floor(size)) {
            status =
                mdot_fail(err, MDOT_MALFORMED, "%s: %s is %s = %g by default, but it must be a whole number above 0",
                          family->path, key != NULL ? key : name, formula, size);
        }
        if (status != MDOT_OK) return status;
        if (!fe_add_size(&family->sizes, name, size))
            return mdot_fail(err, MDOT_MALFORMED, "%s: the family has too many sizes", family->path);
    }
    return MDOT_OK;
}

/* Does the configuration have the setting of a variant? Keys such as "g==h" are relations of sizes. */
static bool has_setting(const fe_family *family, json_object *config, const char *key, json_object *wanted)
{
    const char *equals = strstr(key, "==");
    if (equals == NULL) {
        json_object *value = NULL;
        if (json_object_object_get_ex(config, key, &value) && value == NULL && wanted == NULL) return true; /* null */
        if (value == NULL) value = fe_member(fe_member(family->description, "defaults"), key);
        if (json_object_is_type(wanted, json_type_boolean) && json_object_is_type(value, json_type_int))
            return json_object_get_boolean(wanted) == json_object_get_boolean(value);
        return json_object_equal(value, wanted) != 0;
    }
    char left[32];
    double a, b;
    snprintf(left, sizeof left, "%.*s", (int)(equals - key), key);
    bool is_known = fe_compute(left, &family->sizes, &a) && fe_compute(equals + 2, &family->sizes, &b);
    return is_known && (a == b) == (json_object_get_boolean(wanted) != 0);
}

/* The configuration's key for a size. */
static const char *key_of(const fe_family *family, const char *name, size_t length)
{
    json_object *rows = fe_member(family->description, "sizes");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i), *keys = json_object_array_get_idx(row, 1);
        const char *other = json_object_get_string(json_object_array_get_idx(row, 0));
        if (strlen(other) == length && strncmp(other, name, length) == 0 && json_object_array_length(keys) > 0)
            return json_object_get_string(json_object_array_get_idx(keys, 0));
    }
    return name;
}

/* The variant with all its settings in the configuration. If there is none, UNSUPPORTED names the first other setting
 * of the nearest one. */
static mdot_status find_variant(fe_family *family, json_object *config, mdot_error *err)
{
    json_object *variants = fe_member(family->description, "variants"), *nearest_value = NULL;
    size_t most_equal = 0;
    const char *nearest = NULL;
    for (size_t i = 0; i < json_object_array_length(variants); i++) {
        json_object *variant = json_object_array_get_idx(variants, i), *other_value = NULL;
        const char *other = NULL;
        size_t equal = 1;
        json_object_object_foreach(fe_member(variant, "when"), key, wanted)
        {
            bool same = has_setting(family, config, key, wanted);
            equal += same;
            if (same || other != NULL) continue;
            other = key;
            other_value = wanted;
        }
        if (other == NULL) {
            family->variant = variant;
            return MDOT_OK;
        }
        if (equal <= most_equal) continue;
        most_equal = equal;
        nearest = other;
        nearest_value = other_value;
    }
    const char *equals = nearest != NULL ? strstr(nearest, "==") : NULL;
    if (equals != NULL)
        return mdot_fail(err, MDOT_UNSUPPORTED, "%s: mdot knows no %s network whose %s and %s are %s" REMEDY,
                         family->path, fe_text(family->description, "family"),
                         key_of(family, nearest, (size_t)(equals - nearest)),
                         key_of(family, equals + 2, strlen(equals + 2)),
                         json_object_get_boolean(nearest_value) ? "different" : "equal");
    json_object *value = fe_member(config, nearest != NULL ? nearest : "");
    return mdot_fail(err, MDOT_UNSUPPORTED, "%s: mdot knows no %s network with %s %.60s, but with %.60s" REMEDY,
                     family->path, fe_text(family->description, "family"), nearest != NULL ? nearest : "these settings",
                     value != NULL ? json_object_to_json_string(value) : "of this value",
                     json_object_to_json_string(nearest_value));
}

static mdot_status unknown_family(const char *folder, const char *path, const char *type, mdot_error *err)
{
    bs_nearest nearest = bs_nearest_begin(type);
    DIR *directory = opendir(folder);
    char *found[256];
    size_t count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        const char *dot = strstr(entry->d_name, ".json.gz");
        if (dot == NULL || count == sizeof found / sizeof *found) continue;
        char *name = strndup(entry->d_name, (size_t)(dot - entry->d_name));
        if (name == NULL) break;
        found[count++] = name;
        bs_nearest_add(&nearest, name, name);
    }
    if (directory != NULL) closedir(directory);
    mdot_status status = mdot_fail(
        err, MDOT_UNSUPPORTED, "%s: mdot reads no configuration of model_type \"%.60s\" (the nearest are %s)" REMEDY,
        path, type, bs_nearest_end(&nearest).text);
    for (size_t i = 0; i < count; i++) free(found[i]);
    return status;
}

/* The class for which the configuration was saved, if it has another head than the family's. */
static void warn_of_head(const fe_family *family, json_object *config, const mdot_job_options *options)
{
    const char *network = fe_text(family->description, "network");
    json_object *classes = fe_member(config, "architectures");
    const char *saved = json_object_is_type(classes, json_type_array) && json_object_array_length(classes) > 0
                            ? json_object_get_string(json_object_array_get_idx(classes, 0))
                            : NULL;
    if (options->warning == NULL || saved == NULL || network == NULL || strcmp(saved, network) == 0) return;
    char text[300];
    snprintf(text, sizeof text, "%s: the job is that of %s, not of %.60s", family->path, network, saved);
    options->warning(options->user, text);
}

static bool is_half(json_object *config)
{
    const char *type = fe_text(config, "dtype");
    if (type == NULL) type = fe_text(config, "torch_dtype");
    return type != NULL && strstr(type, "float16") != NULL; /* or bfloat16 */
}

static double longest_of(json_object *config)
{
    static const char *const keys[] = {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double longest = json_object_get_double(fe_member(config, keys[i]));
        if (longest > 0) return longest;
    }
    return 0;
}

mdot_status fe_find_family(const char *folder, const char *path, json_object *config, const mdot_job_options *options,
                           fe_family *out_family, mdot_error *err)
{
    *out_family = (fe_family){.path = path};
    const char *type = fe_text(config, "model_type");
    if (type == NULL && (fe_member(config, "traceEvents") != NULL || fe_member(config, "nodes") != NULL))
        return mdot_fail(err, MDOT_UNSUPPORTED,
                         "%s: a profiler's trace; make a job of it with Python: `mdot export %s`", path, path);
    if (type == NULL) return mdot_fail(err, MDOT_MALFORMED, "%s: model_type is missing; it names the family", path);
    if (folder == NULL)
        return mdot_fail(err, MDOT_NOT_FOUND, "%s: the folder share/mdot/jobs is missing; set MDOT_JOBS to it", path);
    if (strchr(type, '/') != NULL || *type == '.') return unknown_family(folder, path, type, err);
    char *name = NULL;
    if (asprintf(&name, "%s/%s.json.gz", folder, type) < 0) return BS_OUT_OF_MEMORY(err, "%s", path);
    mdot_status status = fe_read_json(name, &out_family->description, err);
    free(name);
    json_object *part = fe_member(config, "text_config");
    if (status == MDOT_NOT_FOUND && json_object_is_type(part, json_type_object) &&
        fe_text(part, "model_type") != NULL) {
        char text[300];
        snprintf(text, sizeof text, "%s: the job has the text model of \"%.60s\" alone", path, type);
        if (options->warning != NULL) options->warning(options->user, text);
        status = fe_find_family(folder, path, part, options, out_family, err);
        out_family->is_half = out_family->is_half || is_half(config);
        return status;
    }
    if (status == MDOT_NOT_FOUND) return unknown_family(folder, path, type, err);
    if (status == MDOT_OK) status = read_sizes(out_family, config, err);
    if (status == MDOT_OK) status = find_variant(out_family, config, err);
    if (status != MDOT_OK) return status;
    warn_of_head(out_family, config, options);
    out_family->is_half = is_half(config);
    out_family->longest = longest_of(config);
    return MDOT_OK;
}

void fe_warn_of_positions(const fe_family *family, const mdot_job *job, const mdot_job_options *options)
{
    double positions;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    bool is_known = options->warning != NULL && fe_compute("P", &family->sizes, &positions);
    if (!is_known || (double)info.length <= positions) return;
    char text[300];
    snprintf(text, sizeof text,
             "%s: the network has a table of %g positions (%s), which fails at length %lld in PyTorch", family->path,
             positions, key_of(family, "P", 1), (long long)info.length);
    options->warning(options->user, text);
}
