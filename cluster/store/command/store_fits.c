/* store_fits.c — `mdot-store calibrate` and `drift`: the groups of a store against the predictor.
 *
 * Both pass the groups on as a `mdot calibrate` table, so a change of calibrations needs no change here. */
#include "base/file.h"
#include "base/training/measurements_csv.h"
#include "store/command/store_actions.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens the store, and updates its groups. */
static mdot_status open_groups(const char *path, mdot_store **out_store, mdot_store_refresh_report *out_report,
                               mdot_error *err)
{
    mdot_status status = store_open_existing(path, out_store, err);
    if (status == MDOT_OK) status = mdot_store_refresh(*out_store, out_report, err);
    if (status == MDOT_OK && out_report->group_count == 0)
        status =
            mdot_fail(err, MDOT_NOT_FOUND, "%s: the store has no measured rows; `mdot-store import` adds them", path);
    return status;
}

/* ---- calibrate --------------------------------------------------------------------------------------------------- */

static mdot_status write_groups(const mdot_store_filter *filter, const char *path, char **out_folder, mdot_error *err)
{
    mdot_store *store = NULL;
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    char *text = NULL, *table = NULL;
    size_t size = 0;
    mdot_status status = open_groups(path, &store, &report, err);
    if (status == MDOT_OK) status = store_make_folder(store, out_folder, err);
    mdot_store_export options = {
        .struct_size = sizeof options, .flags = MDOT_STORE_EXPORT_GROUPS, .filter = filter, .job_folder = "."};
    if (status == MDOT_OK) status = mdot_store_export_csv(store, &options, &text, &size, err);
    if (status == MDOT_OK && asprintf(&table, "%s/groups.csv", *out_folder) < 0)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = bs_write_file(table, text, size, err);
    if (status == MDOT_OK)
        printf("  %s; %s read again; %s of repeated measurements\n",
               store_count_of(report.new_row_count, "new row").text, store_count_of(report.read_row_count, "row").text,
               store_count_of(report.group_count, "group").text);
    free(table);
    mdot_store_free(text);
    mdot_store_close(store);
    return status;
}

/* Runs `mdot calibrate` from this program's folder or from PATH. Returns its exit status. */
static int run_mdot(char **argv)
{
    char path[PATH_MAX];
    pid_t child;
    int status;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "mdot");
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (slash != NULL) strcpy(slash + 1, "mdot");
    fflush(stdout);
    int failure = slash != NULL && access(path, X_OK) == 0 ? posix_spawn(&child, path, NULL, NULL, argv, environ)
                                                           : posix_spawnp(&child, "mdot", NULL, NULL, argv, environ);
    if (failure != 0) {
        cli_message(PROGRAM, "cannot run `mdot calibrate` (%s): install the command mdot, or add its folder to PATH",
                    strerror(failure));
        return CLI_FAILED;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return CLI_FAILED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

int store_calibrate(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    char *folder = NULL, *table = NULL;
    mdot_store_filter filter;
    if (request->output == NULL) return cli_usage_error(PROGRAM, "no output file given: use -o FILE.cal");
    if (!store_filter(request, &filter)) return CLI_USAGE;
    mdot_status status = write_groups(&filter, operands[0], &folder, &err);
    if (status == MDOT_OK && asprintf(&table, "%s/groups.csv", folder) < 0)
        status = mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    int result = CLI_FAILED;
    if (status == MDOT_OK) {
        char *argv[] = {"mdot",
                        "calibrate",
                        "-q",
                        "-o",
                        (char *)(uintptr_t)request->output,
                        table,
                        "--model",
                        (char *)(uintptr_t)request->model_path,
                        NULL};
        if (request->model_path == NULL) argv[6] = NULL;
        result = run_mdot(argv);
    } else {
        cli_report(PROGRAM, &err);
    }
    free(table);
    store_remove_folder(folder);
    return cli_finish(PROGRAM, result);
}

/* ---- Predictions of groups --------------------------------------------------------------------------------------- */

typedef struct fit {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_calibration *calibration; /* NULL: uncalibrated */
    char name[400];                /* names predictor and calibration uniquely */
} fit;

/* FNV-1a of a file; 0 if it cannot be read. */
static uint64_t hash_of_file(const char *path)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    uint64_t hash = UINT64_C(14695981039346656037);
    if (path == NULL || bs_read_file(path, &bytes, &size, NULL) != MDOT_OK) return 0;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    free(bytes);
    return hash;
}

static mdot_status open_fit(const store_request *r, fit *f, mdot_error *err)
{
    char *found = NULL;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_status status = r->model_path == NULL ? predict_find_default(&found, err) : MDOT_OK;
    const char *path = r->model_path != NULL ? r->model_path : found;
    if (status == MDOT_OK) status = predict_open_model(path, NULL, &f->predictor, &f->context, err);
    if (status == MDOT_OK) status = mdot_predictor_get_info(f->predictor, &info);
    if (status == MDOT_OK && r->calibration_path != NULL)
        status = predict_load_calibration(r->calibration_path, info.name, &f->calibration, err);
    if (status == MDOT_OK)
        snprintf(f->name, sizeof f->name, "%.200s %016llx %016llx", info.name, (unsigned long long)hash_of_file(path),
                 (unsigned long long)hash_of_file(r->calibration_path));
    free(found);
    return status;
}

static void close_fit(fit *f)
{
    mdot_calibration_destroy(f->calibration);
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
}

/* The groups that lack a prediction. */
typedef struct group_ids {
    mdot_store_prediction *item; /* room for `capacity` */
    size_t count, capacity;
} group_ids;

static bool take_unpredicted(void *user, const mdot_store_group *g)
{
    group_ids *ids = user;
    if (g->predicted_ms > 0) return true;
    if (ids->count == ids->capacity) {
        size_t capacity = 2 * ids->capacity + 64;
        mdot_store_prediction *item = realloc(ids->item, capacity * sizeof *item);
        if (item == NULL) return false;
        ids->item = item;
        ids->capacity = capacity;
    }
    ids->item[ids->count++] = (mdot_store_prediction){.struct_size = sizeof *ids->item, .group = g->id};
    return true;
}

static bool same_groups(const group_ids *a, const group_ids *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) equal = a->item[i].group == b->item[i].group;
    return equal;
}

static mdot_status predict_group(const fit *f, const mdot_job *job, const mdot_configuration *c,
                                 mdot_store_prediction *out, mdot_error *err)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_status status = mdot_predict(f->context, job, c, &p, err);
    if (status == MDOT_OK && f->calibration != NULL)
        status = mdot_calibration_apply_to_job(f->calibration, job, c, &p, err);
    if (status != MDOT_OK) return status;
    out->ms = p.step_ms;
    out->lower_ms = p.lower_ms;
    out->upper_ms = p.upper_ms;
    return MDOT_OK;
}

/* Exports the groups that lack a prediction, with ids in table row order. Another process may add or predict groups
 * meanwhile; then the export is made again. */
static mdot_status export_unpredicted(mdot_store *store, const fit *f, const char *folder, char **out_text,
                                      size_t *out_size, group_ids *out_ids, mdot_error *err)
{
    enum { TRIES = 5 };
    const mdot_store_export options = {.struct_size = sizeof options,
                                       .flags = MDOT_STORE_EXPORT_GROUPS,
                                       .job_folder = folder,
                                       .unpredicted_by = f->name};
    for (int i = 0; i < TRIES; i++) {
        group_ids after = {0};
        mdot_store_free(*out_text);
        *out_text = NULL;
        out_ids->count = 0;
        mdot_status status = mdot_store_visit_groups(store, NULL, f->name, take_unpredicted, out_ids, err);
        if (status == MDOT_OK) status = mdot_store_export_csv(store, &options, out_text, out_size, err);
        if (status == MDOT_OK) status = mdot_store_visit_groups(store, NULL, f->name, take_unpredicted, &after, err);
        bool is_same = status == MDOT_OK && same_groups(out_ids, &after);
        free(after.item);
        if (status != MDOT_OK || is_same) return status;
    }
    return mdot_fail(err, MDOT_IO, "other processes change the groups of the store: try again");
}

/* Predicts the groups that lack a prediction; others keep theirs from an earlier call. */
static mdot_status predict_groups(mdot_store *store, const fit *f, const char *folder, mdot_error *err)
{
    char *text = NULL;
    size_t size = 0;
    measured_steps steps = {0};
    group_ids ids = {0};
    mdot_status status = export_unpredicted(store, f, folder, &text, &size, &ids, err);
    if (status == MDOT_OK && ids.count > 0) {
        status = measured_parse(PROGRAM, "the groups", text, size, true, &steps, err);
        if (status == MDOT_OK && steps.count != ids.count)
            status = mdot_fail(err, MDOT_IO, "the store has %zu groups, and its table has %zu", ids.count, steps.count);
        for (size_t i = 0; status == MDOT_OK && i < ids.count; i++)
            status = predict_group(f, steps.jobs[i], &steps.item[i].configuration, &ids.item[i], err);
        if (status == MDOT_OK) status = mdot_store_set_predictions(store, f->name, ids.item, ids.count, err);
    }
    free(ids.item);
    measured_free(&steps);
    mdot_store_free(text);
    return status;
}

/* ---- drift ------------------------------------------------------------------------------------------------------- */

typedef struct drift_report {
    bool json;
    size_t count, found;
} drift_report;

#define DRIFT_P 0.01

static void print_test(const char *name, unsigned long long rows, const char *unit, const char *statistic, double value,
                       double p, const char *finding)
{
    printf("    %-9s %-13s %s %8.2f   p %-8.2g %s\n", name, store_count_of(rows, unit).text, statistic, value, p,
           p < DRIFT_P ? finding : "");
}

static void print_drift_text(const mdot_store_drift *d)
{
    char finding[320];
    cli_text gpu, software, previous;
    store_time time;
    printf("  %s, %s: %s, %s; measured / predicted %.3f\n", cli_printable(&gpu, d->gpu_name),
           *d->software != '\0' ? cli_printable(&software, d->software) : "unknown software",
           store_count_of(d->row_count, "row").text, store_count_of(d->job_count, "job").text, d->ratio);
    snprintf(finding, sizeof finding, "steps take %.3f of the predicted time, beyond the intervals", d->ratio);
    print_test("level", (unsigned long long)d->job_count, "job", "z", d->level_z, d->level_p, finding);
    if (d->dated_row_count > 0) {
        snprintf(finding, sizeof finding, "since %s steps take %.3f of the time before",
                 store_print_time(&time, d->changed_at), d->change_ratio);
        print_test("change", (unsigned long long)d->dated_row_count, "row", "D", d->change_statistic, d->change_p,
                   finding);
    }
    if (d->pair_count > 0) {
        snprintf(finding, sizeof finding, "steps take %.3f of the time with %.200s", d->software_ratio,
                 *d->previous_software != '\0' ? cli_printable(&previous, d->previous_software) : "unknown software");
        print_test("software", (unsigned long long)d->pair_count, "pair", "t", d->software_t, d->software_p, finding);
    }
}

static void print_drift_json(const mdot_store_drift *d, bool is_first)
{
    fputs(is_first ? "  {\"gpu\": " : ",\n  {\"gpu\": ", stdout);
    cli_json_string(stdout, d->gpu_name);
    fputs(", \"software\": ", stdout);
    cli_json_string(stdout, d->software);
    printf(", \"rows\": %llu, \"groups\": %llu, \"jobs\": %llu, \"ratio\": %.6g, \"level_z\": %.6g, \"level_p\": %.6g",
           (unsigned long long)d->row_count, (unsigned long long)d->group_count, (unsigned long long)d->job_count,
           d->ratio, d->level_z, d->level_p);
    printf(", \"dated_rows\": %llu, \"changed_at\": %lld, \"change_ratio\": %.6g, \"change_statistic\": %.6g, "
           "\"change_p\": %.6g",
           (unsigned long long)d->dated_row_count, (long long)d->changed_at, d->change_ratio, d->change_statistic,
           d->change_p);
    fputs(", \"previous_software\": ", stdout);
    cli_json_string(stdout, d->previous_software);
    printf(", \"pairs\": %llu, \"software_ratio\": %.6g, \"software_t\": %.6g, \"software_p\": %.6g}",
           (unsigned long long)d->pair_count, d->software_ratio, d->software_t, d->software_p);
}

static bool print_drift(void *user, const mdot_store_drift *d)
{
    drift_report *r = user;
    r->found += d->level_p < DRIFT_P || d->change_p < DRIFT_P || d->software_p < DRIFT_P;
    if (r->json)
        print_drift_json(d, r->count == 0);
    else
        print_drift_text(d);
    r->count++;
    return true;
}

static bool print_host_drift(void *user, const mdot_store_host *h)
{
    drift_report *r = user;
    cli_text host, gpu;
    if (!store_is_slow(h)) return true;
    if (!r->json) {
        printf("  host %s, %s: steps take %.3f of the time on other hosts (%s, p %.2g)\n",
               cli_printable(&host, h->host), cli_printable(&gpu, h->gpu_name), h->ratio,
               store_count_of(h->row_count, "row").text, h->p);
        return true;
    }
    fputs(r->count++ == 0 ? "  {\"host\": " : ",\n  {\"host\": ", stdout);
    cli_json_string(stdout, h->host);
    fputs(", \"gpu\": ", stdout);
    cli_json_string(stdout, h->gpu_name);
    printf(", \"rows\": %llu, \"groups\": %llu, \"ratio\": %.6g, \"p\": %.6g}", (unsigned long long)h->row_count,
           (unsigned long long)h->group_count, h->ratio, h->p);
    return true;
}

static mdot_status find_drift(const store_request *request, const char *path, drift_report *report, mdot_error *err)
{
    mdot_store *store = NULL;
    fit f = {0};
    char *folder = NULL;
    mdot_store_refresh_report refreshed = MDOT_INIT(mdot_store_refresh_report);
    mdot_status status = open_groups(path, &store, &refreshed, err);
    if (status == MDOT_OK) status = open_fit(request, &f, err);
    if (status == MDOT_OK) status = store_make_folder(store, &folder, err);
    if (status == MDOT_OK) status = predict_groups(store, &f, folder, err);
    if (status == MDOT_OK && report->json) fputs("[\n", stdout);
    if (status == MDOT_OK) status = mdot_store_find_drift(store, f.name, print_drift, report, err);
    if (status == MDOT_OK) status = mdot_store_find_hosts(store, print_host_drift, report, err);
    store_remove_folder(folder);
    close_fit(&f);
    mdot_store_close(store);
    return status;
}

int store_drift(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    drift_report report = {.json = request->json};
    mdot_status status = find_drift(request, operands[0], &report, &err);
    if (status != MDOT_OK) return cli_finish(PROGRAM, cli_report(PROGRAM, &err));
    if (report.json)
        fputs("\n]\n", stdout);
    else
        printf("  %zu of %zu combinations of GPU and software show a change at p < %.2f, corrected for all tests\n",
               report.found, report.count, DRIFT_P);
    return cli_finish(PROGRAM, CLI_OK);
}
