/* throughputs.c — reads the speeds of each kind of job from a table.
 *
 *     job_type,gpus,type,samples_per_s,batch   CSV: one line for each kind, width (a power of two) and type of GPU,
 *     with
 *                                           the samples of a step on these GPUs; the optional column spread is the
 *                                           slowdown on several nodes
 *     job_type,gpus,type,steps_per_s[,batch]   the same in steps. Without `batch`, a step is the same work at all
 *     widths
 *     model,batch,slices_of_7,step_ms_median   CSV: steps on slices of a GPU (MIG), as measured-2026/miso_mig.csv has
 *                                           them; the kind is "MODEL (batch size BATCH)". A slice of S sevenths is one
 *                                           GPU of the type mig-Sg, and S GPUs of the type mig, whose nodes have 7 GPUs
 *     {"v100": {"('LM (batch size 5)', 1)": {"null": 79.3, …}, …}, …}
 *
 * The last is the form of Gavel's simulation_throughputs.json, which requires json-c. Only jobs that run alone ("null")
 * are read. Only the cluster's types (ignoring case) and the trace's kinds are read. */
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SC_HAVE_JSON
#include <json.h>
#endif

#define MAX_SPEED 1e9
#define MAX_SPREAD 1e3

typedef struct target {
    const sc_cluster *cluster;
    sc_workload *workload;
    bool counts_samples;
} target;

static mdot_status read_slice(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    enum { MODEL, BATCH, STEP, SLICES };
    const target *t = context;
    char name[128], type_name[16];
    int batch, slices;
    double step_ms;
    BS_TRY(bs_csv_integer(csv, at[BATCH], 1, 1 << 24, &batch, err));
    BS_TRY(bs_csv_integer(csv, at[SLICES], 1, 7, &slices, err));
    BS_TRY(bs_csv_number(csv, at[STEP], 1e-6, 1e9, &step_ms, err));
    snprintf(name, sizeof name, "%.80s (batch size %d)", csv->field[at[MODEL]], batch);
    snprintf(type_name, sizeof type_name, "mig-%dg", slices);
    sc_kind *kind = sc_workload_find_kind(t->workload, name, SIZE_MAX);
    unsigned type = sc_cluster_find_type(t->cluster, type_name), index = sc_speed_index(slices);
    if (kind != NULL && type < t->cluster->type_count) kind->speed[type][0] = 1000 / step_ms;
    type = sc_cluster_find_type(t->cluster, "mig");
    if (index == SC_SPEEDS)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "slices_of_7 is %d, but a slice has 1, 2, 3, 4 or 7", slices);
    if (kind != NULL && type < t->cluster->type_count) kind->speed[type][index] = 1000 / step_ms;
    return MDOT_OK;
}

static mdot_status read_speed(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    enum { KIND, GPUS, TYPE, SPEED, BATCH, SPREAD };
    const target *t = context;
    int gpus;
    double speed, spread = 0, batch = 0;
    BS_TRY(bs_csv_integer(csv, at[GPUS], 1, 1 << (SC_WIDTHS - 1), &gpus, err));
    BS_TRY(bs_csv_number(csv, at[SPEED], 0, MAX_SPEED, &speed, err));
    if (at[BATCH] != BS_CSV_ABSENT) BS_TRY(bs_csv_number(csv, at[BATCH], 1, MAX_SPEED, &batch, err));
    BS_TRY(sc_csv_optional(csv, at[SPREAD], 1, MAX_SPREAD, &spread, err));
    unsigned width = sc_width_of(gpus), type = sc_cluster_find_type(t->cluster, csv->field[at[TYPE]]);
    sc_kind *kind = sc_workload_find_kind(t->workload, csv->field[at[KIND]], SIZE_MAX);
    if (width == SC_WIDTHS)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "gpus is %d, but must be a power of two", gpus);
    if (kind != NULL && kind->step_samples[width] > 0 && kind->step_samples[width] != batch)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "%s has batch %g and %g on %d GPUs", kind->name,
                           kind->step_samples[width], batch, gpus);
    if (kind == NULL || type == t->cluster->type_count) return MDOT_OK;
    kind->step_samples[width] = batch;
    kind->speed[type][width] = t->counts_samples || batch == 0 ? speed : speed * batch;
    kind->spread[type][width] = spread;
    return MDOT_OK;
}

static mdot_status read_csv(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    target t = {cluster, workload, false};
    mdot_status status;
    BS_TRY(bs_csv_open(path, UINT64_MAX, NULL, &csv, err));
    t.counts_samples = bs_csv_find(&csv, "samples_per_s") != BS_CSV_ABSENT;
    if (bs_csv_find(&csv, "slices_of_7") != BS_CSV_ABSENT)
        status = sc_read_open_rows(&csv, "model,batch,step_ms_median,slices_of_7", read_slice, &t, err);
    else
        status = sc_read_open_rows(&csv,
                                   t.counts_samples ? "job_type,gpus,type,samples_per_s,batch,spread?"
                                                    : "job_type,gpus,type,steps_per_s,batch?,spread?",
                                   read_speed, &t, err);
    bs_csv_close(&csv);
    return status;
}

#ifdef SC_HAVE_JSON

/* Splits "('LM (batch size 5)', 2)" into the kind (may be NULL) and 2. */
static sc_kind *split_key(const sc_workload *workload, const char *key, int *out_gpus)
{
    const char *end = strrchr(key, '\'');
    if (strncmp(key, "('", 2) != 0 || end == NULL || end < key + 2 || sscanf(end, "', %d)", out_gpus) != 1) return NULL;
    return sc_workload_find_kind(workload, key + 2, (size_t)(end - key - 2));
}

static mdot_status read_type(const char *path, const sc_workload *workload, struct json_object *table, unsigned type,
                             mdot_error *err)
{
    json_object_object_foreach(table, key, row)
    {
        int gpus;
        struct json_object *alone;
        sc_kind *kind = split_key(workload, key, &gpus);
        if (kind == NULL || sc_width_of(gpus) == SC_WIDTHS) continue;
        double speed = json_object_is_type(row, json_type_object) && json_object_object_get_ex(row, "null", &alone)
                           ? json_object_get_double(alone)
                           : -1;
        if (!(speed >= 0 && speed <= MAX_SPEED))
            return mdot_fail(err, MDOT_MALFORMED, "%s: %s has no throughput alone (\"null\")", path, key);
        kind->speed[type][sc_width_of(gpus)] = speed;
    }
    return MDOT_OK;
}

static mdot_status read_json(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    struct json_object *entries = json_object_from_file(path);
    mdot_status status = MDOT_OK;
    if (entries == NULL) return mdot_fail(err, MDOT_MALFORMED, "%s: %s", path, json_util_get_last_err());
    if (!json_object_is_type(entries, json_type_object)) {
        status = mdot_fail(err, MDOT_MALFORMED, "%s: no table of types", path);
    } else {
        json_object_object_foreach(entries, name, table)
        {
            unsigned type = sc_cluster_find_type(cluster, name);
            if (status == MDOT_OK && type < cluster->type_count && json_object_is_type(table, json_type_object))
                status = read_type(path, workload, table, type, err);
        }
    }
    json_object_put(entries);
    return status;
}

#else

static mdot_status read_json(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    return mdot_fail(err, MDOT_UNSUPPORTED, "%s: built without json-c (libjson-c-dev), which reads it", path);
}

#endif

mdot_status sc_read_throughputs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err)
{
    size_t length = strlen(path);
    bool is_json = length > 5 && strcmp(path + length - 5, ".json") == 0;
    return is_json ? read_json(path, cluster, workload, err) : read_csv(path, cluster, workload, err);
}
