/* test_sacct.c — Slurm's accounting becomes outcomes: all states, array jobs, steps, requeued jobs, odd names, and
 * malformed lines by number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "accounting/accounting.h"
#include "store/records.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

enum { MOST = 64 };

/* Copies of outcomes; texts longer than a field are cut. */
typedef struct copy {
    mdot_store_outcome o;
    char job_id[32], name[64], user[32], account[32], partition[32], state[32], gpu[32], cluster[32];
} copy;

typedef struct list {
    copy item[MOST];
    size_t count;
} list;

static bool take(void *user, const mdot_store_outcome *o)
{
    list *l = user;
    copy *c = &l->item[l->count++];
    c->o = *o;
#define COPY(field) snprintf(c->field, sizeof c->field, "%s", o->field)
    COPY(job_id);
    COPY(name);
    COPY(user);
    COPY(account);
    COPY(partition);
    COPY(state);
    COPY(gpu);
    COPY(cluster);
    return l->count < MOST;
}

static list *outcomes_of(store_fixture *f)
{
    static list l;
    l.count = 0;
    store_expect_ok(mdot_store_visit_outcomes(f->store, take, &l, &f->err), &f->err);
    return &l;
}

typedef struct reports {
    size_t count, line[MOST];
    char reason[MOST][128];
} reports;

static void report(void *user, size_t line, const char *reason)
{
    reports *r = user;
    r->line[r->count] = line;
    snprintf(r->reason[r->count++], sizeof *r->reason, "%s", reason);
}

static mdot_store_import import_text(store_fixture *f, const char *text, reports *out_reports)
{
    static reports unused;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    if (out_reports == NULL) out_reports = &unused;
    out_reports->count = 0;
    mdot_store_accounting options = {
        .struct_size = sizeof options, .name = "jobs.txt", .cluster = "main", .malformed = report, .user = out_reports};
    store_expect_ok(mdot_store_import_sacct(f->store, text, strlen(text), &options, &counts, &f->err), &f->err);
    return counts;
}

#define HEADER                                                                                                         \
    "JobID|JobName|User|Account|Partition|State|Submit|Start|End|Elapsed|Timelimit|ReqTRES|AllocTRES|NNodes|"          \
    "ExitCode\n"

static void a_job_has_all_of_its_fields(void **state)
{
    store_fixture *f = *state;
    import_text(f,
                HEADER
                "1234|train-bert|ada|vision|gpu|COMPLETED|2026-11-24T10:00:00|2026-11-24T10:05:00|2026-11-25T12:05:07|"
                "1-02:00:07|2-00:00:00|billing=64,cpu=64,gres/gpu=8,mem=512G,node=2|"
                "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=512G,node=2|2|0:0\n",
                NULL);
    list *l = outcomes_of(f);
    assert_int_equal(l->count, 1);
    const copy *c = &l->item[0];
    assert_string_equal(c->cluster, "main");
    assert_string_equal(c->job_id, "1234");
    assert_string_equal(c->name, "train-bert");
    assert_string_equal(c->user, "ada");
    assert_string_equal(c->account, "vision");
    assert_string_equal(c->partition, "gpu");
    assert_string_equal(c->state, "COMPLETED");
    assert_string_equal(c->gpu, "a100");
    assert_int_equal(c->o.outcome, MDOT_OUTCOME_COMPLETED);
    assert_int_equal(c->o.submitted_at, 1795514400);
    assert_int_equal(c->o.started_at, 1795514700);
    assert_int_equal(c->o.ended_at, 1795514700 + 93607);
    assert_int_equal(c->o.elapsed_s, 93607);
    assert_int_equal(c->o.limit_s, 172800);
    assert_int_equal(c->o.gpu_count, 8);
    assert_int_equal(c->o.node_count, 2);
    assert_int_equal(c->o.exit_code, 0);
}

/* The states of sacct(1) and squeue(1), by the outcome that docs/reference/formats/store.md states. */
static void every_state_of_slurm_has_an_outcome(void **state)
{
    store_fixture *f = *state;
    static const char *const states[][20] = {
        [MDOT_OUTCOME_UNFINISHED] = {"COMPLETING", "CONFIGURING", "EXPEDITING", "PENDING", "POWER_UP_NODE", "REQUEUED",
                                     "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "RUNNING", "SIGNALING",
                                     "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "UPDATE_DB"},
        [MDOT_OUTCOME_COMPLETED] = {"COMPLETED"},
        [MDOT_OUTCOME_FAILED] = {"BOOT_FAIL", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "RECONFIG_FAIL"},
        [MDOT_OUTCOME_CANCELLED] = {"CANCELLED", "PREEMPTED", "REVOKED"},
        [MDOT_OUTCOME_TIMED_OUT] = {"DEADLINE", "TIMEOUT"}};
    static const char *const table[] = {
#define STATE(name, code, outcome) name,
#include "accounting/slurm_states.def"
    };
    char text[4096] = "JobID|State\n";
    size_t count = 0;
    for (int outcome = 0; outcome <= MDOT_OUTCOME_TIMED_OUT; outcome++)
        for (const char *const *name = states[outcome]; *name != NULL; name++)
            sprintf(text + strlen(text), "%zu|%s\n", ++count, *name);
    assert_int_equal(count, sizeof table / sizeof *table);
    mdot_store_import counts = import_text(f, text, NULL);
    assert_int_equal(counts.malformed_count, 0);
    list *l = outcomes_of(f);
    assert_int_equal(l->count, count);
    count = 0;
    for (int outcome = 0; outcome <= MDOT_OUTCOME_TIMED_OUT; outcome++)
        for (const char *const *name = states[outcome]; *name != NULL; name++)
            if ((int)l->item[count++].o.outcome != outcome)
                fail_msg("%s: outcome %d, not %d", *name, (int)l->item[count - 1].o.outcome, outcome);
}

static void states_are_read_with_users_codes_and_cuts(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int outcome; /* -1: malformed */
    } cases[] = {
        {"CANCELLED by 1000", MDOT_OUTCOME_CANCELLED},
        {"CANCELLED+", MDOT_OUTCOME_CANCELLED},
        {"OUT_OF_ME+", MDOT_OUTCOME_FAILED},
        {"TO", MDOT_OUTCOME_TIMED_OUT},
        {"timeout", MDOT_OUTCOME_TIMED_OUT},
        {"PREEMPTED", MDOT_OUTCOME_CANCELLED},
        {"CANC", -1},
        {"", -1},
        {"DONE", -1},
        {"C+", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_outcome outcome;
        bool is_read = ac_read_state(cases[i].text, &outcome);
        if (is_read != (cases[i].outcome >= 0) || (is_read && (int)outcome != cases[i].outcome))
            fail_msg("%s", cases[i].text);
    }
}

static void durations_and_limits_are_seconds(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t duration, limit; /* INT64_MIN: malformed */
    } cases[] = {
        {"00:00:01", 1, 1},
        {"1-02:03:04", 93784, 93784},
        {"59:59", 3599, 3599},
        {"01:02.500", 62, 62},
        {"3-00", 259200, 259200},
        {"120", 120, 7200},
        {"", -1, 0},
        {"INVALID", -1, 0},
        {"1:2:3:4", INT64_MIN, INT64_MIN},
        {"abc", INT64_MIN, INT64_MIN},
        {"1-", INT64_MIN, INT64_MIN},
        {"UNLIMITED", INT64_MIN, -1},
        {"Partition_Limit", INT64_MIN, 0},
        {"99999999999", INT64_MIN, INT64_MIN},
        {"-1", INT64_MIN, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t duration = 0, limit = 0;
        if (!ac_read_duration(cases[i].text, &duration)) duration = INT64_MIN;
        if (!ac_read_limit(cases[i].text, &limit)) limit = INT64_MIN;
        if (duration != cases[i].duration || limit != cases[i].limit)
            fail_msg("%s: %lld and %lld", cases[i].text, (long long)duration, (long long)limit);
    }
}

static void a_byte_order_mark_is_skipped(void **state)
{
    store_fixture *f = *state;
    static const char text[] = "\xef\xbb\xbfJobID|State|Submit|Timelimit\n1|COMPLETED|2026-11-24T10:00:00|UNLIMITED\n";
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    store_expect_ok(mdot_store_import_sacct(f->store, text, sizeof text - 1, NULL, &counts, &f->err), &f->err);
    assert_int_equal(store_count(f->store).outcome_count, 1);
    assert_true(ac_is_accounting(text) && ac_is_accounting(text + 3));
}

static void times_are_dates_or_seconds(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t seconds; /* -1: malformed */
    } cases[] = {{"2026-11-24T10:00:00", 1795514400},
                 {"2024-02-29", 1709164800},
                 {"1795514400", 1795514400},
                 {"Unknown", 0},
                 {"None", 0},
                 {"", 0},
                 {"2026-13-01T00:00:00", -1},
                 {"2026-11-24T10:00:00Z", 1795514400},
                 {"2026-11-24T10:00:00+01:00", 1795510800},
                 {"2026-11-24T10:00:00-0530", 1795534200},
                 {"2026-11-24T10:00:00+1", -1},
                 {"2026-11-24T10:00:00+16:00", -1},
                 {"2026-11-24T10:00:00+01:60", -1},
                 {"2026-11-24T10:00:00ZZ", -1},
                 {"yesterday", -1},
                 {"2026-11-24T25:00:00", -1},
                 {"2026-11-24T", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t seconds;
        if (!ac_read_time(cases[i].text, &seconds)) seconds = -1;
        if (seconds != cases[i].seconds) fail_msg("%s: %lld", cases[i].text, (long long)seconds);
    }
    int64_t summer, winter; /* Slurm prints local time */
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_true(ac_read_time("2026-07-24T10:00:00", &summer));
    assert_true(ac_read_time("2026-11-24T10:00:00", &winter));
    setenv("TZ", "UTC0", 1);
    tzset();
    assert_int_equal(summer, 1784880000);
    assert_int_equal(winter, 1795510800);
    assert_true(ac_has_zone("2026-07-24T10:00:00Z") && ac_has_zone("2026-07-24T10:00:00-05:00"));
    assert_false(ac_has_zone("2026-07-24T10:00:00") || ac_has_zone("2026-07-24"));
}

static void gpus_are_found_among_resources(void **state)
{
    (void)state;
    const struct {
        const char *text, *type;
        int64_t count; /* -1: malformed */
    } cases[] = {{"cpu=4,mem=8G", "", 0},
                 {"gres/gpu=2", "", 2},
                 {"gres/gpu:h100=4", "h100", 4},
                 {"gres/gpu:a100=1,gres/gpu:v100=2", "a100", 3},
                 {"billing=1,gres/gpu:a100=2,gres/gpu=2", "a100", 2},
                 {"gres/gpumem=80G,gres/gpu=1,gres/gpuutil=5", "", 1},
                 {"", "", 0},
                 {"gres/gpu=x", "", -1},
                 {"cpu", "", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t count;
        const char *type = NULL;
        size_t length = 0;
        if (!ac_read_gpus(cases[i].text, &count, &type, &length)) count = -1;
        if (count != cases[i].count) fail_msg("%s: %lld", cases[i].text, (long long)count);
        if (count >= 0) assert_int_equal(length, strlen(cases[i].type));
        if (count >= 0 && length > 0) assert_memory_equal(type, cases[i].type, length);
    }
}

static void exit_codes_include_signals(void **state)
{
    (void)state;
    int64_t code;
    assert_true(ac_read_exit("1:0", &code) && code == 1);
    assert_true(ac_read_exit("0:9", &code) && code == 137);
    assert_true(ac_read_exit("", &code) && code == -1);
    assert_false(ac_read_exit("1:", &code));
    assert_true(ac_read_count("12K", &code) && code == 12000);
    assert_false(ac_read_count("x", &code));
}

static void array_tasks_are_jobs_and_steps_are_not(void **state)
{
    store_fixture *f = *state;
    mdot_store_import counts =
        import_text(f,
                    "JobID|State|Elapsed\n"
                    "7_1|COMPLETED|00:10:00\n7_1.batch|COMPLETED|00:10:00\n7_1.extern|COMPLETED|00:10:00\n"
                    "7_1.0|FAILED|00:01:00\n7_2|FAILED|00:00:05\n7_[3-9%2]|PENDING|00:00:00\n8+0|COMPLETED|01:00\n",
                    NULL);
    assert_int_equal(counts.added_count, 3);
    assert_int_equal(counts.step_count, 4);
    assert_int_equal(counts.malformed_count, 0);
    list *l = outcomes_of(f);
    assert_string_equal(l->item[0].job_id, "7_1");
    assert_int_equal(l->item[0].o.outcome, MDOT_OUTCOME_COMPLETED);
    assert_string_equal(l->item[1].job_id, "7_2");
    assert_string_equal(l->item[2].job_id, "8+0");
}

/* A pending job runs and completes; a later report of an earlier state changes nothing. */
static void a_job_is_updated_until_it_has_finished(void **state)
{
    store_fixture *f = *state;
    static const char head[] = "JobID|State|Submit|Elapsed\n";
    char text[128];
    snprintf(text, sizeof text, "%s5|PENDING|2026-11-24T10:00:00|00:00:00\n", head);
    assert_int_equal(import_text(f, text, NULL).added_count, 1);
    assert_int_equal(import_text(f, text, NULL).known_count, 1);
    snprintf(text, sizeof text, "%s5|TIMEOUT|2026-11-24T10:00:00|04:00:00\n", head);
    assert_int_equal(import_text(f, text, NULL).updated_count, 1);
    snprintf(text, sizeof text, "%s5|RUNNING|2026-11-24T10:00:00|02:00:00\n", head);
    assert_int_equal(import_text(f, text, NULL).known_count, 1);
    list *l = outcomes_of(f);
    assert_int_equal(l->count, 1);
    assert_int_equal(l->item[0].o.outcome, MDOT_OUTCOME_TIMED_OUT);
    assert_int_equal(l->item[0].o.elapsed_s, 14400);
    /* Slurm gives a requeued job a new submission time, so it is another execution. */
    snprintf(text, sizeof text, "%s5|COMPLETED|2026-11-24T15:00:00|03:00:00\n", head);
    assert_int_equal(import_text(f, text, NULL).added_count, 1);
}

static void names_with_separators_are_put_together(void **state)
{
    store_fixture *f = *state;
    mdot_store_import counts = import_text(f, "JobID|JobName|State|\n3|a|b||c|FAILED|\n4|plain|COMPLETED|\r\n", NULL);
    assert_int_equal(counts.malformed_count, 0);
    list *l = outcomes_of(f);
    assert_string_equal(l->item[0].name, "a|b||c");
    assert_int_equal(l->item[0].o.outcome, MDOT_OUTCOME_FAILED);
    assert_string_equal(l->item[1].name, "plain");
}

static void malformed_lines_are_reported_by_number_and_others_kept(void **state)
{
    store_fixture *f = *state;
    reports r;
    mdot_store_import counts =
        import_text(f,
                    "JobID|State|Elapsed|ExitCode\n1|COMPLETED|00:01:00|0:0\n2|DONE|00:01:00|0:0\n\n"
                    "3|FAILED|x|0:0\nabc|FAILED|00:01:00|0:0\n4|FAILED\n5|FAILED|00:01:00|0:0|9\n"
                    "6|FAILED|00:01:00|zero\n7|COMPLETED|00:02:00|0:0\n",
                    &r);
    static const size_t lines[] = {3, 5, 6, 7, 8, 9};
    static const char *const reasons[] = {"State is \"DONE\"", "Elapsed is \"x\"",
                                          "JobID is \"abc\"",  "2 fields where the first line names 4",
                                          "5 fields",          "ExitCode is \"zero\""};
    assert_int_equal(counts.malformed_count, 6);
    assert_int_equal(counts.added_count, 2);
    assert_int_equal(r.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r.line[i], lines[i]);
        expect_contains(r.reason[i], reasons[i]);
    }
}

static void a_text_without_the_needed_fields_is_refused(void **state)
{
    store_fixture *f = *state;
    static const char *const texts[] = {"", "JobID,State\n1,COMPLETED\n", "JobID|JobName\n1|x\n"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mdot_store_import_sacct(f->store, texts[i], strlen(texts[i]), NULL, NULL, &f->err),
                         MDOT_MALFORMED);
    expect_contains(f->err.message, "use sacct -P");
}

static void outcomes_of_other_schedulers_are_added_directly(void **state)
{
    store_fixture *f = *state;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_store_outcome o = {.struct_size = sizeof o,
                            .job_id = "k8s-1",
                            .outcome = MDOT_OUTCOME_COMPLETED,
                            .elapsed_s = 60,
                            .digest = f->digest};
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, &counts, &f->err), &f->err);
    assert_int_equal(counts.added_count, 1);
    store_expect_ok(mdot_store_add_outcomes(f->store, NULL, 0, NULL, &f->err), &f->err);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

static void every_field_of_an_outcome_comes_back(void **state)
{
    store_fixture *f = *state;
    static const char *const names[] = {"unfinished", "completed", "failed", "cancelled", "timed-out"};
    for (int i = 0; i < 5; i++) {
        mdot_store_outcome o = {.struct_size = sizeof o,
                                .cluster = "c",
                                .job_id = "j",
                                .submitted_at = 100 + i,
                                .name = "n",
                                .user = "u",
                                .account = "a",
                                .partition = "p",
                                .state = "s",
                                .digest = f->digest,
                                .gpu = "g",
                                .gpu_count = 200 + i,
                                .node_count = 300 + i,
                                .started_at = 400 + i,
                                .ended_at = 500 + i,
                                .elapsed_s = 600 + i,
                                .limit_s = 700 + i,
                                .exit_code = 800 + i,
                                .outcome = (mdot_outcome)i};
        mdot_store_import counts = MDOT_INIT(mdot_store_import);
        store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, &counts, &f->err), &f->err);
        assert_true(counts.added_count == 1 && counts.updated_count == 0 && counts.known_count == 0);
        store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, &counts, &f->err), &f->err);
        assert_true(counts.added_count == 0 && counts.updated_count == 0 && counts.known_count == 1);
        list *l = outcomes_of(f);
        assert_int_equal(l->count, i + 1);
        const copy *c = &l->item[i];
        assert_true(c->o.id == i + 1 && c->o.struct_size == sizeof o && c->o.submitted_at == o.submitted_at);
        assert_true(c->o.gpu_count == o.gpu_count && c->o.node_count == o.node_count);
        assert_true(c->o.started_at == o.started_at && c->o.ended_at == o.ended_at && c->o.exit_code == o.exit_code);
        assert_true(c->o.elapsed_s == o.elapsed_s && c->o.limit_s == o.limit_s && c->o.outcome == o.outcome);
        assert_string_equal(c->cluster, "c");
        assert_string_equal(c->job_id, "j");
        assert_string_equal(c->name, "n");
        assert_string_equal(c->user, "u");
        assert_string_equal(c->account, "a");
        assert_string_equal(c->partition, "p");
        assert_string_equal(c->state, "s");
        assert_string_equal(c->gpu, "g");
        assert_string_equal(mdot_outcome_name((mdot_outcome)i), names[i]);
    }
    assert_null(mdot_outcome_name((mdot_outcome)5));
}

static bool stop(void *user, const mdot_store_outcome *o)
{
    (void)o;
    ++*(int *)user;
    return false;
}

static void wrong_outcomes_and_missing_arguments_are_named(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    int visits = 0;
    for (int i = 0; i < 4; i++) {
        mdot_store_outcome o[2] = {{.struct_size = sizeof *o, .job_id = "1"},
                                   {.struct_size = sizeof *o, .job_id = "2"}};
        if (i == 0) o[1].job_id = NULL;
        if (i == 1) o[1].job_id = "";
        if (i == 2) o[1].outcome = (mdot_outcome)9;
        if (i == 3) o[1].reserved = 1;
        store_expect_failure(mdot_store_add_outcomes(f->store, o, 2, NULL, e), e, MDOT_INVALID_ARGUMENT,
                             "outcome 1 to be added lacks a job_id or an outcome");
        expect_contains(e->message, f->path);
        assert_int_equal(store_count(f->store).outcome_count, 0);
    }
    store_expect_missing(mdot_store_add_outcomes(NULL, NULL, 0, NULL, e), e);
    store_expect_missing(mdot_store_add_outcomes(f->store, NULL, 1, NULL, e), e);
    store_expect_ok(mdot_store_add_outcomes(f->store, NULL, 0, NULL, e), e);
    store_expect_missing(mdot_store_visit_outcomes(NULL, stop, &visits, e), e);
    store_expect_missing(mdot_store_visit_outcomes(f->store, NULL, &visits, e), e);
    store_expect_missing(mdot_store_import_sacct(NULL, "x", 1, NULL, NULL, e), e);
    store_expect_missing(mdot_store_import_sacct(f->store, NULL, 1, NULL, NULL, e), e);
    mdot_store_import small = {.struct_size = 1};
    assert_int_equal(mdot_store_import_sacct(f->store, "JobID|State\n", 12, NULL, &small, e), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_store_add_outcomes(f->store, NULL, 0, &small, e), MDOT_INVALID_ARGUMENT);
    store_expect_failure(mdot_store_import_sacct(f->store, "", 0, NULL, NULL, e), e, MDOT_MALFORMED, "sacct");
    static const char faulty[] = "JobID|State\n0|FAULTY\n1|FAILED\n2|FAILED\n";
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    store_expect_ok(mdot_store_import_sacct(f->store, faulty, sizeof faulty - 1, NULL, &counts, e), e);
    assert_int_equal(counts.malformed_count, 1); /* and reported to nobody */
    store_expect_ok(mdot_store_visit_outcomes(f->store, stop, &visits, e), e);
    assert_int_equal(visits, 1);
}

/* A text is read to its size only; the cluster is that of the text, if the text names any. */
static void a_text_ends_at_its_size(void **state)
{
    store_fixture *f = *state;
    static const char text[] = "JobID|Cluster|State\n1|north|FAILED\n2||FAILED\n3|x|FAILED\n";
    const mdot_store_accounting options = {.struct_size = sizeof options, .cluster = "south"};
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    size_t size = (size_t)(strstr(text, "3|x") - text);
    store_expect_ok(mdot_store_import_sacct(f->store, text, size, &options, &counts, &f->err), &f->err);
    assert_int_equal(counts.added_count, 2);
    list *l = outcomes_of(f);
    assert_string_equal(l->item[0].cluster, "north");
    assert_string_equal(l->item[1].cluster, "south");
}

int main(void)
{
    setenv("TZ", "UTC0", 1); /* of times without a zone */
    const struct CMUnitTest tests[] = {
        CASE(a_job_has_all_of_its_fields),
        CASE(a_byte_order_mark_is_skipped),
        CASE(every_state_of_slurm_has_an_outcome),
        cmocka_unit_test(states_are_read_with_users_codes_and_cuts),
        cmocka_unit_test(durations_and_limits_are_seconds),
        cmocka_unit_test(times_are_dates_or_seconds),
        cmocka_unit_test(gpus_are_found_among_resources),
        cmocka_unit_test(exit_codes_include_signals),
        CASE(array_tasks_are_jobs_and_steps_are_not),
        CASE(a_job_is_updated_until_it_has_finished),
        CASE(names_with_separators_are_put_together),
        CASE(malformed_lines_are_reported_by_number_and_others_kept),
        CASE(a_text_without_the_needed_fields_is_refused),
        CASE(outcomes_of_other_schedulers_are_added_directly),
        CASE(every_field_of_an_outcome_comes_back),
        CASE(wrong_outcomes_and_missing_arguments_are_named),
        CASE(a_text_ends_at_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
