/* gpu_table.c — see gpu_table.h. */
#include "service/gpu_table.h"

#include "base/file.h"
#include "service/json.h"

#include <stdlib.h>
#include <string.h>

const sv_gpu_number sv_gpu_numbers[SV_GPU_NUMBERS] = {
#define NUMBER(field)                                                                                                  \
    {                                                                                                                  \
#field, offsetof(mdot_gpu, field)                                                                              \
    }
    NUMBER(compute_capability), NUMBER(sm_count),    NUMBER(boost_mhz),   NUMBER(memory_gib),
    NUMBER(memory_gbps),        NUMBER(l2_mib),      NUMBER(fp32_tflops), NUMBER(tf32_tflops),
    NUMBER(fp16_tflops),        NUMBER(nvlink_gbps), NUMBER(pcie_gbps),   NUMBER(watts),
    NUMBER(fp8_tflops),
};
_Static_assert(sizeof(mdot_gpu) == sizeof(size_t) + sizeof(char *) + SV_GPU_NUMBERS * sizeof(double),
               "mdot_gpu has numbers that GET /v1/gpus lacks");

const mdot_gpu *sv_gpu_table_known(const sv_gpu_table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->item[i].name, name) == 0) return &t->item[i];
    return NULL;
}

mdot_status sv_gpu_table_find(const sv_gpu_table *t, const char *name, mdot_gpu *out, mdot_error *err)
{
    for (size_t i = 0; i < t->site_count; i++)
        if (strcmp(t->item[i].name, name) == 0) return *out = t->item[i], MDOT_OK;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_status status = mdot_gpu_find(name, &gpu, err);
    if (status == MDOT_OK) *out = gpu;
    return status;
}

/* ---- A GPU in JSON ----------------------------------------------------------------------------------------------- */

typedef struct gpu_request {
    const char *like;
    mdot_gpu *gpu;
} gpu_request;

static mdot_status read_gpu_number(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    gpu_request *r = user;
    for (size_t i = 0; i < SV_GPU_NUMBERS; i++)
        if (strcmp(name, sv_gpu_numbers[i].name) == 0)
            return sv_json_number(name, value, false, 0, 1e9, (double *)((char *)r->gpu + sv_gpu_numbers[i].offset),
                                  err);
    if (strcmp(name, "predictor") == 0) return MDOT_OK; /* printed by GET /v1/gpus */
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a GPU has no member \"%.64s\"", name);
}

mdot_status sv_read_gpu(struct json_object *value, const sv_gpu_table *table, mdot_gpu *out, mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(mdot_gpu, name, TEXT, 0, 0)};
    if (json_object_is_type(value, json_type_string))
        return sv_gpu_table_find(table, json_object_get_string(value), out, err);
    if (!json_object_is_type(value, json_type_object))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "gpu must be a name or an object");
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    gpu_request r = {.gpu = &gpu};
    mdot_status status = MDOT_OK;
    struct json_object *like;
    if (json_object_object_get_ex(value, "like", &like)) {
        if (!json_object_is_type(like, json_type_string))
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "like must be the name of a GPU");
        status = sv_gpu_table_find(table, json_object_get_string(like), &gpu, err);
        json_object_object_del(value, "like");
    }
    gpu.name = NULL;
    if (status == MDOT_OK) status = sv_json_members(value, members, 1, &gpu, read_gpu_number, &r, err);
    if (status == MDOT_OK && (gpu.name == NULL || *gpu.name == '\0' || strlen(gpu.name) > SV_GPU_NAME_BYTES))
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "a GPU needs a name of at most %d bytes", SV_GPU_NAME_BYTES);
    if (status == MDOT_OK) *out = gpu;
    return status;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static mdot_status read_site_gpus(sv_gpu_table *t, struct json_object *list, mdot_error *err)
{
    size_t count = json_object_array_length(list);
    t->site_names = calloc(count + 1, sizeof *t->site_names);
    if (t->site_names == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) {
        mdot_gpu *gpu = &t->item[t->site_count];
        mdot_status status = MDOT_OK;
        struct json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_object))
            status = mdot_fail(err, MDOT_MALFORMED, "a GPU must be an object");
        if (status == MDOT_OK) status = sv_read_gpu(item, t, gpu, err);
        if (status != MDOT_OK) return status;
        t->site_names[i] = strdup(gpu->name);
        if (t->site_names[i] == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        gpu->name = t->site_names[i];
        t->count = ++t->site_count;
    }
    return MDOT_OK;
}

mdot_status sv_gpu_table_load(sv_gpu_table *t, const char *path, mdot_error *err)
{
    static const sv_member members[] = {{"gpus", SV_JSON_ARRAY, 0, 0, 0},
                                        {"schema", SV_JSON_TEXT, 0, 0, sizeof(void *)}};
    struct {
        struct json_object *gpus;
        const char *schema;
    } file = {0};
    unsigned char *bytes = NULL;
    size_t size = 0, known = 0, site = 0;
    struct json_object *object = NULL;
    mdot_error reason = {0};
    mdot_status status = MDOT_OK;
    if (path != NULL) {
        status = bs_read_file_within(path, SV_BODY_BYTES, &bytes, &size, err);
        if (status != MDOT_OK) return status;
        status = sv_json_read(bytes, size, &object, &reason);
        if (status == MDOT_OK) status = sv_json_members(object, members, 2, &file, NULL, NULL, &reason);
        if (status == MDOT_OK) site = file.gpus != NULL ? json_object_array_length(file.gpus) : 0;
    }
    const char *const *names = mdot_gpu_names();
    while (names[known] != NULL) known++;
    if (status == MDOT_OK) {
        t->item = calloc(site + known, sizeof *t->item);
        if (t->item == NULL) status = mdot_fail(&reason, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK && site > 0) status = read_site_gpus(t, file.gpus, &reason);
    for (size_t i = 0; status == MDOT_OK && i < known; i++) {
        t->item[t->count] = MDOT_INIT(mdot_gpu);
        status = mdot_gpu_find(names[i], &t->item[t->count++], &reason);
    }
    json_object_put(object);
    free(bytes);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "%s: %s", path, reason.message);
}

void sv_gpu_table_free(sv_gpu_table *t)
{
    for (size_t i = 0; t->site_names != NULL && t->site_names[i] != NULL; i++) free(t->site_names[i]);
    free(t->site_names);
    free(t->item);
    *t = (sv_gpu_table){0};
}
