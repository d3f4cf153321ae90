/* configurations.c — see configurations.h. */
#include "service/configurations.h"
#include "service/service.h"

#include "base/suggest.h"
#include "base/training/job_argument.h"
#include "runtime/job/configuration_table.h"

#include <stdlib.h>
#include <string.h>

static bool is_named(const rt_option *option, const char *name)
{
    size_t length = strcspn(option->json, "?");
    return option->kind != RT_KIND_GPU && length > 0 && strncmp(option->json, name, length) == 0 &&
           name[length] == '\0';
}

static mdot_status read_choice(const char *name, const rt_option *option, struct json_object *value, double *out,
                               mdot_error *err)
{
    const char *text = json_object_get_string(value);
    bool is_text = json_object_is_type(value, json_type_string);
    int choice = is_text ? rt_option_find_choice(option, text) : BS_NO_CHOICE;
    if (choice != BS_NO_CHOICE) return *out = choice, MDOT_OK;
    char known[256] = "";
    for (size_t i = 0, used = 0; option->choices[i] != NULL && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be one of %s, not %.64s", name, known, text);
}

/* "2.4", as 204. */
static mdot_status read_version(const char *name, struct json_object *value, double *out, mdot_error *err)
{
    unsigned major = 0, minor = 0;
    int end = 0;
    const char *text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    bool is_read = strspn(text, "0123456789.") == strlen(text) && strlen(text) <= 5 &&
                   sscanf(text, "%2u.%2u%n", &major, &minor, &end) == 2 && text[end] == '\0' && major > 0;
    if (!is_read)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be a version as a string, for example \"2.4\"", name);
    *out = 100 * major + minor;
    return MDOT_OK;
}

static mdot_status read_value(const char *name, const rt_option *option, struct json_object *value, double *out,
                              mdot_error *err)
{
    switch (option->kind) {
    case RT_KIND_CHOICE: return read_choice(name, option, value, out, err);
    case RT_KIND_VERSION: return read_version(name, value, out, err);
    case RT_KIND_FLAG:
        if (!json_object_is_type(value, json_type_boolean))
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be true or false", name);
        *out = json_object_get_boolean(value);
        return MDOT_OK;
    case RT_KIND_REAL: return sv_json_number(name, value, false, option->least, option->most, out, err);
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT:
    case RT_KIND_GPU: break;
    }
    return sv_json_number(name, value, true, option->least, option->most, out, err);
}

mdot_status sv_read_option(const char *name, struct json_object *value, mdot_configuration *io, mdot_error *err)
{
    size_t i = 0;
    while (i < RT_OPTION_COUNT && !is_named(&rt_options[i], name)) i++;
    if (i == RT_OPTION_COUNT) return MDOT_NOT_FOUND;
    /* one member for both: the kind of link, or the rate */
    bool is_number = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    if (i == RT_OPTION_link && is_number) i = RT_OPTION_link_gbps;
    double number = 0;
    mdot_status status = read_value(name, &rt_options[i], value, &number, err);
    if (status == MDOT_OK) rt_option_set(io, &rt_options[i], number);
    return status;
}

static mdot_status refuse_option(const char *name, mdot_error *err)
{
    char known[RT_OPTION_COUNT][40]; /* the names without question marks */
    bs_suggest near = bs_suggest_begin(name);
    bs_suggest_add(&near, "gpu");
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        int length = (int)strcspn(rt_options[i].json, "?");
        snprintf(known[i], sizeof known[i], "%.*s", length, rt_options[i].json);
        if (length > 0) bs_suggest_add(&near, known[i]);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no option \"%.64s\"%s", name, bs_suggest_end(&near).text);
}

/* ---- Combinations ------------------------------------------------------------------------------------------------ */

enum { MOST_MEMBERS = RT_OPTION_COUNT + 1 };

typedef struct object_members {
    const char *name[MOST_MEMBERS];
    struct json_object *value[MOST_MEMBERS];
    size_t count, combinations;
} object_members;

static size_t length_of(struct json_object *value)
{
    return json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 1;
}

static mdot_status list_members(struct json_object *object, size_t space, object_members *out, mdot_error *err)
{
    out->count = 0;
    out->combinations = 1;
    struct json_object_iterator end = json_object_iter_end(object);
    for (struct json_object_iterator i = json_object_iter_begin(object); !json_object_iter_equal(&i, &end);
         json_object_iter_next(&i)) {
        if (out->count == MOST_MEMBERS) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "too many options");
        out->name[out->count] = json_object_iter_peek_name(&i);
        out->value[out->count] = json_object_iter_peek_value(&i);
        size_t length = length_of(out->value[out->count]);
        if (length == 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%.64s is an empty array", out->name[out->count]);
        if (length > space / out->combinations)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "a request has at most %d configurations, combinations included",
                             SV_CONFIGURATIONS);
        out->combinations *= length;
        out->count++;
    }
    return MDOT_OK;
}

/* Returns the GPU of a value; equal values of one object share it. */
static mdot_status find_gpu(sv_configurations *io, struct json_object *value, const sv_gpu_table *table,
                            const mdot_gpu **out, mdot_error *err)
{
    if (json_object_is_type(value, json_type_string)) {
        *out = sv_gpu_table_known(table, json_object_get_string(value));
        if (*out != NULL) return MDOT_OK;
    }
    mdot_gpu **more = realloc(io->gpus, (io->gpu_count + 1) * sizeof *more);
    mdot_gpu *gpu = calloc(1, sizeof *gpu);
    if (more != NULL) io->gpus = more;
    if (more == NULL || gpu == NULL) {
        free(gpu);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    io->gpus[io->gpu_count++] = gpu;
    *out = gpu;
    return sv_read_gpu(value, table, gpu, err);
}

static mdot_status read_combination(sv_configurations *io, const object_members *members, size_t combination,
                                    const mdot_job_info *job, const sv_gpu_table *table, const mdot_gpu **gpus,
                                    mdot_error *err)
{
    mdot_configuration *c = &io->item[io->count];
    *c = (mdot_configuration){.struct_size = sizeof *c, .batch = cli_job_batch(job)};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section != RT_SECTION_JOB) rt_option_set(c, &rt_options[i], rt_options[i].fallback);
    c->optimizer = job->optimizer;
    for (size_t i = members->count; i-- > 0;) { /* the last varies fastest */
        const char *name = members->name[i];
        struct json_object *value = members->value[i];
        size_t length = length_of(value), index = combination % length;
        combination /= length;
        if (json_object_is_type(value, json_type_array)) value = json_object_array_get_idx(value, index);
        mdot_status status = MDOT_OK;
        if (strcmp(name, "gpu") == 0) {
            if (gpus[index] == NULL) status = find_gpu(io, value, table, &gpus[index], err);
            c->gpu_spec = gpus[index];
        } else {
            status = sv_read_option(name, value, c, err);
            if (status == MDOT_NOT_FOUND) status = refuse_option(name, err);
        }
        if (status != MDOT_OK) return status;
    }
    if (c->gpu_spec == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration needs a gpu; GET /v1/gpus lists the names");
    io->count++;
    return MDOT_OK;
}

mdot_status sv_configurations_add(sv_configurations *io, struct json_object *object, const mdot_job_info *job,
                                  const sv_gpu_table *table, mdot_error *err)
{
    if (!json_object_is_type(object, json_type_object))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration must be an object");
    object_members members;
    mdot_status status = list_members(object, SV_CONFIGURATIONS - io->count, &members, err);
    if (status != MDOT_OK) return status;
    struct json_object *gpu = NULL;
    json_object_object_get_ex(object, "gpu", &gpu);
    const mdot_gpu **gpus = calloc(length_of(gpu), sizeof *gpus);
    size_t needed = io->count + members.combinations;
    if (needed > io->capacity) {
        size_t capacity = needed > 2 * io->capacity ? needed : 2 * io->capacity;
        mdot_configuration *more = realloc(io->item, capacity * sizeof *more);
        if (more != NULL) {
            io->item = more;
            io->capacity = capacity;
        }
    }
    if (gpus == NULL || io->capacity < needed) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < members.combinations; i++)
        status = read_combination(io, &members, i, job, table, gpus, err);
    free(gpus);
    return status;
}

void sv_configurations_free(sv_configurations *c)
{
    for (size_t i = 0; i < c->gpu_count; i++) free(c->gpus[i]);
    free(c->gpus);
    free(c->item);
    *c = (sv_configurations){0};
}
