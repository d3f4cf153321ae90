/* store_operations.c — see store_operations.h. */
#include "tests/store/support/store_operations.h"
#include "store/database.h"
#include "store/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t store_answer;

static void note_real(double value) { store_answer = st_hash(store_answer, &value, sizeof value); }

static void note_text(const char *text) { store_answer = st_hash(store_answer, text, strlen(text) + 1); }

static bool take_row(void *user, const mdot_store_row *r)
{
    (void)user;
    note_real(r->ms);
    note_text(r->note);
    note_text(r->name);
    return true;
}

static bool take_job(void *user, const mdot_store_job *j)
{
    (void)user;
    note_text(j->digest);
    return true;
}

static bool take_outcome(void *user, const mdot_store_outcome *o)
{
    (void)user;
    note_text(o->job_id);
    return true;
}

static bool take_group(void *user, const mdot_store_group *g)
{
    (void)user;
    note_real(g->ms);
    note_real(g->predicted_ms);
    note_text(g->settings);
    return true;
}

static bool take_drift(void *user, const mdot_store_drift *d)
{
    (void)user;
    note_text(d->software);
    note_text(d->previous_software);
    note_real(d->change_p + 3 * d->level_p + 7 * d->software_p + 11 * d->change_ratio + (double)d->dated_row_count);
    return true;
}

static bool take_host(void *user, const mdot_store_host *h)
{
    (void)user;
    note_text(h->host);
    note_real(h->p);
    return true;
}

static void note_line(void *user, size_t line, const char *reason)
{
    (void)user;
    note_real((double)line);
    note_text(reason);
}

static mdot_status check(store_fixture *f, mdot_error *err) { return mdot_store_check(f->store, err); }

static mdot_status info(store_fixture *f, mdot_error *err)
{
    mdot_store_info i = MDOT_INIT(mdot_store_info);
    mdot_status status = mdot_store_get_info(f->store, &i, err);
    if (status == MDOT_OK) note_real((double)i.row_count);
    return status;
}

static mdot_status visit_rows(store_fixture *f, mdot_error *err)
{
    return mdot_store_visit_rows(f->store, NULL, take_row, NULL, err);
}

static mdot_status visit_jobs(store_fixture *f, mdot_error *err)
{
    return mdot_store_visit_jobs(f->store, take_job, NULL, err);
}

static mdot_status visit_outcomes(store_fixture *f, mdot_error *err)
{
    return mdot_store_visit_outcomes(f->store, take_outcome, NULL, err);
}

static mdot_status visit_groups(store_fixture *f, mdot_error *err)
{
    return mdot_store_visit_groups(f->store, NULL, "p", take_group, NULL, err);
}

static mdot_status find_drift(store_fixture *f, mdot_error *err)
{
    return mdot_store_find_drift(f->store, "p", take_drift, NULL, err);
}

static mdot_status find_hosts(store_fixture *f, mdot_error *err)
{
    return mdot_store_find_hosts(f->store, take_host, NULL, err);
}

static mdot_status get_job(store_fixture *f, mdot_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    mdot_status status = mdot_store_get_job(f->store, f->digest, &bytes, &size, err);
    if (status == MDOT_OK) store_answer = st_hash(store_answer, bytes, size);
    if (status != MDOT_OK) assert_null(bytes);
    mdot_store_free(bytes);
    return status;
}

static mdot_status export(store_fixture *f, uint32_t flags, mdot_error *err)
{
    mdot_store_export o = {.struct_size = sizeof o, .flags = flags, .job_folder = flags != 0 ? "jobs" : NULL};
    char *text = NULL;
    size_t size = 0;
    mdot_status status = mdot_store_export_csv(f->store, &o, &text, &size, err);
    if (status == MDOT_OK) note_text(text);
    if (status != MDOT_OK) assert_null(text);
    mdot_store_free(text);
    return status;
}

static mdot_status export_rows(store_fixture *f, mdot_error *err) { return export(f, 0, err); }

static mdot_status export_groups(store_fixture *f, mdot_error *err) { return export(f, MDOT_STORE_EXPORT_GROUPS, err); }

static mdot_status add_rows(store_fixture *f, mdot_error *err)
{
    mdot_store_row rows[] = {store_fixture_row(f, 5), store_fixture_row(f, 6)};
    rows[0].settings = "precision=bf16\ngpus=4";
    size_t added = 0;
    mdot_status status = mdot_store_add_rows(f->store, rows, 2, &added, err);
    note_real((double)added);
    return status;
}

mdot_status store_try_add_job(store_fixture *f, mdot_error *err)
{
    char digest[MDOT_STORE_DIGEST_BYTES];
    mdot_status status = mdot_store_add_job(f->store, f->other, "again", digest, err);
    if (status == MDOT_OK) note_text(digest);
    return status;
}

static mdot_status add_outcomes(store_fixture *f, mdot_error *err)
{
    const mdot_store_outcome o[] = {{.struct_size = sizeof *o, .job_id = "8"},
                                    {.struct_size = sizeof *o, .job_id = "9"}};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_add_outcomes(f->store, o, 2, &counts, err);
    note_real((double)counts.added_count);
    return status;
}

static mdot_status import_csv(store_fixture *f, mdot_error *err)
{
    static char text[16384];
    static const mdot_job *jobs[300];
    size_t length = (size_t)sprintf(text, "job,gpu,batch,precision,ms\n");
    for (int i = 0; i < 300; i++) {
        jobs[i] = i % 2 == 0 ? f->job : f->other;
        length += (size_t)sprintf(text + length, "a%d,A100,%d,amp,%d\n", i % 2, 1 + i % 3, 7 + i);
    }
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_import_csv(f->store, text, length, f->path, jobs, 300, &counts, err);
    note_real((double)counts.added_count);
    return status;
}

mdot_status store_try_import_row(store_fixture *f, mdot_error *err)
{
    static const char text[] = "job,gpu,batch,ms\na,A100,77,5\n";
    const mdot_job *const jobs[] = {f->job};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_import_csv(f->store, text, sizeof text - 1, f->path, jobs, 1, &counts, err);
    note_real((double)counts.added_count);
    return status;
}

static mdot_status import_sacct(store_fixture *f, mdot_error *err)
{
    static const char text[] = "JobID|State|Elapsed\n1|COMPLETED|00:01:00\n2|DONE|00:01:00\n3|FAILED|00:01:00\n";
    mdot_store_accounting options = {.struct_size = sizeof options, .name = f->path, .malformed = note_line};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_status status = mdot_store_import_sacct(f->store, text, sizeof text - 1, &options, &counts, err);
    note_real((double)counts.added_count);
    return status;
}

mdot_status store_try_refresh(store_fixture *f, mdot_error *err)
{
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    mdot_status status = mdot_store_refresh(f->store, &report, err);
    note_real((double)report.new_row_count);
    return status;
}

static mdot_status set_predictions(store_fixture *f, mdot_error *err)
{
    const mdot_store_prediction p[] = {{.struct_size = sizeof *p, .group = 1, .ms = 2, .lower_ms = 1, .upper_ms = 3},
                                       {.struct_size = sizeof *p, .group = 2, .ms = 2, .lower_ms = 1, .upper_ms = 3}};
    return mdot_store_set_predictions(f->store, "q", p, 2, err);
}

static mdot_status open_again(store_fixture *f, mdot_error *err)
{
    mdot_store *store = NULL;
    mdot_status status = mdot_store_open(f->path, NULL, &store, err);
    if (status != MDOT_OK) assert_null(store);
    mdot_store_close(store);
    return status;
}

static mdot_status read_refreshed(store_fixture *f, mdot_error *err)
{
    const mdot_store_options reading = {.struct_size = sizeof reading, .flags = MDOT_STORE_READ_ONLY};
    mdot_store *store = NULL;
    mdot_status status = mdot_store_open(f->path, &reading, &store, err);
    if (status == MDOT_OK) status = mdot_store_refresh(store, NULL, err);
    mdot_store_close(store);
    return status;
}

/* Recovers the damaged copy that make_ready wrote. */
mdot_status store_try_recover(store_fixture *f, mdot_error *err)
{
    char path[1024], damaged[1024];
    snprintf(path, sizeof path, "%s.new", f->path);
    snprintf(damaged, sizeof damaged, "%s.damaged", f->path);
    mdot_store_recovery r = MDOT_INIT(mdot_store_recovery);
    mdot_status status = mdot_store_recover(damaged, path, &r, err);
    note_real((double)r.row_count);
    if (status != MDOT_OK && access(path, F_OK) == 0) fail_msg("a part of a store is left: %s", err->message);
    unlink(path);
    return status;
}

const store_operation store_operations[STORE_OPERATIONS] = {{"check", check, false},
                                                            {"info", info, false},
                                                            {"visit_rows", visit_rows, false},
                                                            {"visit_jobs", visit_jobs, false},
                                                            {"visit_outcomes", visit_outcomes, false},
                                                            {"visit_groups", visit_groups, false},
                                                            {"find_drift", find_drift, false},
                                                            {"find_hosts", find_hosts, false},
                                                            {"get_job", get_job, false},
                                                            {"export_rows", export_rows, false},
                                                            {"export_groups", export_groups, false},
                                                            {"add_rows", add_rows, false},
                                                            {"add_job", store_try_add_job, false},
                                                            {"add_outcomes", add_outcomes, false},
                                                            {"import_csv", import_csv, false},
                                                            {"import_row", store_try_import_row, false},
                                                            {"import_sacct", import_sacct, false},
                                                            {"refresh", store_try_refresh, false},
                                                            {"set_predictions", set_predictions, false},
                                                            {"open", open_again, true},
                                                            {"read_refreshed", read_refreshed, true},
                                                            {"recover", store_try_recover, true}};

int64_t store_count_records(store_fixture *f)
{
    int64_t count = 0;
    mdot_error err = {0};
    store_expect_ok(st_query_number(f->store,
                                    "SELECT (SELECT count(*) FROM rows) + 1000 * (SELECT count(*) FROM outcomes) + "
                                    "100000 * (SELECT count(*) FROM members) + 10000000 * (SELECT count(*) FROM "
                                    "predictions) + 1000000000 * (SELECT count(*) FROM jobs)",
                                    &count, &err),
                    &err);
    return count;
}
