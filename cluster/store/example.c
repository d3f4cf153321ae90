/* store.c — examples of mdot_store.h for the reference: add rows, import, export, look for drift, check and recover.
 *
 *     store JOB.job FOLDER
 */
#include "mdot/mdot_store.h"

#include <stdio.h>
#include <string.h>

enum { ROW_COUNT = 8 };

/* [example: mdot_store_visit_rows, mdot_store_visit_jobs] */
static bool print_row(void *user, const mdot_store_row *row)
{
    (void)user;
    printf("%s, batch %lld on %s: %.1f ms\n", row->name, (long long)row->batch, row->gpu_name, row->ms);
    return true; /* false would stop the visit */
}

static bool count_job(void *user, const mdot_store_job *job)
{
    size_t *rows = user;
    *rows += job->row_count;
    return true;
}

static mdot_status visit(mdot_store *store, mdot_error *err)
{
    const mdot_store_filter filter = {.struct_size = sizeof filter, .gpu = "T4"};
    size_t rows = 0;
    mdot_status status = mdot_store_visit_rows(store, &filter, print_row, NULL, err);
    if (status == MDOT_OK) status = mdot_store_visit_jobs(store, count_job, &rows, err);
    return status;
}
/* [end of example] */

static mdot_status add(mdot_store *store, const mdot_job *job, mdot_error *err)
{
    /* [example: mdot_store_add_job, mdot_store_digest, mdot_store_add_rows] */
    char digest[MDOT_STORE_DIGEST_BYTES], second_digest[MDOT_STORE_DIGEST_BYTES];
    size_t added = 0;
    mdot_store_row rows[ROW_COUNT];
    mdot_status status = mdot_store_add_job(store, job, "ResNet-50", digest, err);
    if (status == MDOT_OK) status = mdot_store_digest(job, second_digest, err); /* equal, without a store */
    for (int i = 0; i < ROW_COUNT; i++)
        rows[i] = (mdot_store_row){.struct_size = sizeof rows[i],
                                   .digest = digest,
                                   .job = "resnet50.job",
                                   .gpu = "T4",
                                   .batch = 32,
                                   .ms = 100 + i,
                                   .software = "torch 2.4.1",
                                   .measured_at = 1700000000 + i};
    if (status == MDOT_OK) status = mdot_store_add_rows(store, rows, ROW_COUNT, &added, err);
    /* [end of example] */

    /* [example: mdot_store_get_job, mdot_store_free] */
    void *bytes = NULL;
    size_t size = 0;
    mdot_job *again = NULL;
    if (status == MDOT_OK) status = mdot_store_get_job(store, digest, &bytes, &size, err);
    if (status == MDOT_OK) status = mdot_job_parse(bytes, size, &again, err);
    mdot_store_free(bytes);
    mdot_job_destroy(again);
    /* [end of example] */
    return status;
}

static mdot_status exchange(mdot_store *store, mdot_error *err)
{
    /* [example: mdot_store_export_csv, mdot_store_import_csv] */
    char *text = NULL;
    size_t size = 0;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_export_csv(store, NULL, &text, &size, err);
    if (status == MDOT_OK) status = mdot_store_import_csv(store, text, size, "all.csv", NULL, 0, &counts, err);
    if (status == MDOT_OK) printf("%zu rows are known already\n", counts.known_count);
    mdot_store_free(text);
    /* [end of example] */

    /* [example: mdot_store_import_sacct] */
    static const char accounting[] = "JobID|State|Elapsed\n7|COMPLETED|00:10:00\n";
    const mdot_store_accounting from = {.struct_size = sizeof from, .name = "sacct", .cluster = "north"};
    if (status == MDOT_OK) status = mdot_store_import_sacct(store, accounting, strlen(accounting), &from, &counts, err);
    /* [end of example] */
    return status;
}

/* [example: mdot_store_add_outcomes, mdot_store_visit_outcomes, mdot_outcome_name] */
static bool print_outcome(void *user, const mdot_store_outcome *outcome)
{
    (void)user;
    printf("job %s of %s: %s\n", outcome->job_id, outcome->cluster, mdot_outcome_name(outcome->outcome));
    return true;
}

static mdot_status add_outcome(mdot_store *store, mdot_error *err)
{
    const mdot_store_outcome outcome = {.struct_size = sizeof outcome,
                                        .cluster = "north",
                                        .job_id = "8",
                                        .elapsed_s = 3600,
                                        .exit_code = 0,
                                        .outcome = MDOT_OUTCOME_COMPLETED};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_add_outcomes(store, &outcome, 1, &counts, err);
    if (status == MDOT_OK) status = mdot_store_visit_outcomes(store, print_outcome, NULL, err);
    return status;
}
/* [end of example] */

/* [example: mdot_store_refresh, mdot_store_visit_groups, mdot_store_set_predictions, mdot_store_find_drift] */
static bool take_group(void *user, const mdot_store_group *group)
{
    mdot_store_prediction *prediction = user;
    prediction->group = group->id;
    return true;
}

static bool print_drift(void *user, const mdot_store_drift *drift)
{
    (void)user;
    printf("%s: steps take %.2f times the prediction\n", drift->gpu_name, drift->ratio);
    return true;
}

static mdot_status compare(mdot_store *store, mdot_error *err)
{
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    mdot_store_prediction prediction = {.struct_size = sizeof prediction, .ms = 90, .lower_ms = 80, .upper_ms = 100};
    mdot_status status = mdot_store_refresh(store, &report, err);
    if (status == MDOT_OK) status = mdot_store_visit_groups(store, NULL, NULL, take_group, &prediction, err);
    if (status == MDOT_OK) status = mdot_store_set_predictions(store, "predictor 0.3", &prediction, 1, err);
    if (status == MDOT_OK) status = mdot_store_find_drift(store, "predictor 0.3", print_drift, NULL, err);
    return status;
}
/* [end of example] */

/* [example: mdot_store_find_hosts] */
static bool print_host(void *user, const mdot_store_host *host)
{
    (void)user;
    printf("%s takes %.2f times as long as other hosts with a %s\n", host->host, host->ratio, host->gpu_name);
    return true;
}

static mdot_status find_hosts(mdot_store *store, mdot_error *err)
{
    return mdot_store_find_hosts(store, print_host, NULL, err);
}
/* [end of example] */

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: store JOB.job FOLDER\n"), 2;
    char path[4096], copy[4096];
    snprintf(path, sizeof path, "%s/site.store", argv[2]);
    snprintf(copy, sizeof copy, "%s/recovered.store", argv[2]);
    mdot_job *job = NULL;
    mdot_error err = {0};

    /* [example: mdotstore_version, mdotstore_version_number] */
    if (mdotstore_version_number() != MDOT_VERSION_NUMBER)
        printf("libmdotstore %s and its headers, %s, differ\n", mdotstore_version(), MDOT_VERSION_STRING);
    /* [end of example] */
    mdot_status status = mdot_job_load(argv[1], &job, &err);

    /* [example: mdot_store_open, mdot_store_get_info, mdot_store_check, mdot_store_close] */
    mdot_store *store = NULL;
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    if (status == MDOT_OK) status = mdot_store_open(path, NULL, &store, &err);
    if (status == MDOT_OK) status = add(store, job, &err);
    if (status == MDOT_OK) status = visit(store, &err);
    if (status == MDOT_OK) status = exchange(store, &err);
    if (status == MDOT_OK) status = add_outcome(store, &err);
    if (status == MDOT_OK) status = compare(store, &err);
    if (status == MDOT_OK) status = find_hosts(store, &err);
    if (status == MDOT_OK) status = mdot_store_get_info(store, &info, &err);
    if (status == MDOT_OK) status = mdot_store_check(store, &err);
    mdot_store_close(store);
    /* [end of example] */

    /* [example: mdot_store_migrate, mdot_store_recover] */
    uint32_t version = 0;
    mdot_store_recovery recovery = MDOT_INIT(mdot_store_recovery);
    if (status == MDOT_OK) status = mdot_store_migrate(path, &version, &err);
    if (status == MDOT_OK) status = mdot_store_recover(path, copy, &recovery, &err);
    if (status == MDOT_OK) printf("%llu rows saved\n", (unsigned long long)recovery.row_count);
    /* [end of example] */
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    mdot_job_destroy(job);
    return status == MDOT_OK ? 0 : 1;
}
