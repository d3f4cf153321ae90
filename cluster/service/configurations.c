/* configurations.c — see configurations.h. */
#include "service/configurations.h"
#include "service/service.h"

#include "base/suggest.h"
#include "base/training/job_argument.h"

#include <stdlib.h>
#include <string.h>

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

mdot_status sv_read_option(const char *name, struct json_object *value, const rt_option **out, double *number,
                           mdot_error *err)
{
    char known[RT_OPTION_COUNT][40]; /* the names without question marks */
    size_t length = strlen(name);
    for (size_t i = 0; i < RT_OPTION_COUNT && length > 0; i++) {
        const rt_option *option = &rt_options[i];
        bool is_named = strncmp(option->json, name, length) == 0 && strchr("?", option->json[length]) != NULL;
        if (!is_named || option->kind == RT_KIND_GPU) continue;
        /* one member for both: the kind of link, or the rate */
        bool is_number = json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
        *out = i == RT_OPTION_link && is_number ? &rt_options[RT_OPTION_link_gbps] : option;
        return read_value(name, *out, value, number, err);
    }
    bs_suggest near = bs_suggest_begin(name);
    bs_suggest_add(&near, "gpu");
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        snprintf(known[i], sizeof known[i], "%.*s", (int)strcspn(rt_options[i].json, "?"), rt_options[i].json);
        if (known[i][0] != '\0') bs_suggest_add(&near, known[i]);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no option \"%.64s\"%s", name, bs_suggest_end(&near).text);
}

/* ---- Combinations ------------------------------------------------------------------------------------------------ */

/* Returns the GPU of a value. */
static mdot_status find_gpu(sv_configurations *io, struct json_object *value, const sv_gpu_table *table,
                            const mdot_gpu **out, mdot_error *err)
{
    bool is_name = json_object_is_type(value, json_type_string);
    *out = is_name ? sv_gpu_table_known(table, json_object_get_string(value)) : NULL;
    if (*out != NULL) return MDOT_OK;
    mdot_gpu **more = realloc(io->gpus, (io->gpu_count + 1) * sizeof *more);
    mdot_gpu *gpu = calloc(1, sizeof *gpu + SV_GPU_NAME_BYTES + 1);
    if (more != NULL) io->gpus = more;
    if (more == NULL || gpu == NULL) {
        free(gpu);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    io->gpus[io->gpu_count++] = gpu;
    mdot_status status = sv_read_gpu(value, table, gpu, err);
    if (status == MDOT_OK) gpu->name = strncpy((char *)(gpu + 1), gpu->name, SV_GPU_NAME_BYTES);
    *out = gpu;
    return status;
}

/* Repeats each of the `count` configurations from `first` on `times` times. */
static mdot_status repeat(sv_configurations *io, size_t first, size_t count, size_t times, mdot_error *err)
{
    size_t needed = first + count * times;
    if (needed > io->capacity) {
        size_t capacity = needed > 2 * io->capacity ? needed : 2 * io->capacity;
        mdot_configuration *more = realloc(io->item, capacity * sizeof *more);
        if (more == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        io->item = more;
        io->capacity = capacity;
    }
    for (size_t i = count * times; times > 1 && i-- > 0;) io->item[first + i] = io->item[first + i / times];
    return MDOT_OK;
}

/* Sets a member in every configuration that has this place in the list: each `step`-th of those from `first` on. */
static mdot_status set_member(sv_configurations *io, size_t first, size_t end, size_t step, const char *name,
                              struct json_object *value, const sv_gpu_table *table, mdot_error *err)
{
    const rt_option *option = NULL;
    const mdot_gpu *gpu = NULL;
    double number = 0;
    bool is_gpu = strcmp(name, "gpu") == 0;
    mdot_status status =
        is_gpu ? find_gpu(io, value, table, &gpu, err) : sv_read_option(name, value, &option, &number, err);
    for (size_t i = first; status == MDOT_OK && i < end; i += step) {
        if (is_gpu)
            io->item[i].gpu_spec = gpu;
        else
            rt_option_set(&io->item[i], option, number);
    }
    return status;
}

mdot_status sv_configurations_add(sv_configurations *io, struct json_object *object, const mdot_job_info *job,
                                  const sv_gpu_table *table, mdot_error *err)
{
    size_t first = io->count, count = 1;
    if (!json_object_is_type(object, json_type_object))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration must be an object");
    if (first == SV_CONFIGURATIONS) count = SV_CONFIGURATIONS + 1;
    mdot_status status = repeat(io, first, 1, 1, err);
    if (status != MDOT_OK) return status;
    mdot_configuration *c = &io->item[first];
    *c = (mdot_configuration){.struct_size = sizeof *c, .batch = cli_job_batch(job)};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section != RT_SECTION_JOB) rt_option_set(c, &rt_options[i], rt_options[i].fallback);
    c->optimizer = job->optimizer;
    json_object_object_foreach(object, name, value)
    {
        bool is_list = json_object_is_type(value, json_type_array);
        size_t length = is_list ? json_object_array_length(value) : 1;
        if (length == 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%.64s is an empty array", name);
        if (length > (SV_CONFIGURATIONS - first) / count)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "a request has at most %d configurations, combinations included",
                             SV_CONFIGURATIONS);
        status = repeat(io, first, count, length, err);
        count *= length;
        for (size_t k = 0; status == MDOT_OK && k < length; k++)
            status = set_member(io, first + k, first + count, length, name,
                                is_list ? json_object_array_get_idx(value, k) : value, table, err);
        if (status != MDOT_OK) return status;
    }
    if (io->item[first].gpu_spec == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration needs a gpu; GET /v1/gpus lists the names");
    io->count = first + count;
    return MDOT_OK;
}

void sv_configurations_free(sv_configurations *c)
{
    for (size_t i = 0; i < c->gpu_count; i++) free(c->gpus[i]);
    free(c->gpus);
    free(c->item);
    *c = (sv_configurations){0};
}
