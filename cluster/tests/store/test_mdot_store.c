/* test_mdot_store.c — mdot-store: tables and accounting in and out, calibrations, drift, outliers, damaged or full
 * stores, and its help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

#define STORE(f, ...) process_run((const char *const[]){MDOT_STORE, __VA_ARGS__, NULL}, &(f)->result)

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, "predict", __VA_ARGS__, NULL}, &(f)->result)

enum { OK = 0, FAILED = 1, USAGE = 2 };

static const char resnet[] = MDOT_JOBS "/resnet50.onnx";

typedef struct fixture {
    char *folder; /* temporary folder of the test */
    process_result result;
} fixture;

/* The program finds the predictor and the command mdot in the environment, because this build has no installation. */
static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    char path[4096];
    if (f == NULL) return -1;
    snprintf(path, sizeof path, "%.*s:%s", (int)(strrchr(MDOT_CLI, '/') - MDOT_CLI), MDOT_CLI, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("MDOT_PREDICTOR", MDOT_SHIPPED_PREDICTOR, 1);
    f->folder = process_make_folder();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

static const char steps[] = MDOT_JOBS "/steps_gavel.csv";

static char *path_in(const fixture *f, const char *name) { return process_in_folder(f->folder, name); }

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 18);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_ok(const fixture *f)
{
    if (f->result.status != OK) fail_msg("status %d: %s%s", f->result.status, f->result.out, f->result.err);
}

static void expect_same_file(const char *left, const char *right)
{
    char *a = read_text(left), *b = read_text(right);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void tables_go_in_and_out_unchanged(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *copy = path_in(f, "b.store"), *first = path_in(f, "first.csv"),
         *second = path_in(f, "second.csv"), *jobs = path_in(f, "jobs");
    STORE(f, "import", store, steps, "-q");
    expect_ok(f);
    expect_contains(f->result.out, "34 rows added, 0 known");
    STORE(f, "import", store, steps);
    expect_contains(f->result.out, "0 rows added, 34 known");
    STORE(f, "add", store, "job=" MDOT_JOBS "/resnet50.onnx", "gpu=A100", "batch=32", "parallel=dp=4,tp=2", "ms=161.5",
          "software=torch 2.4, CUDA \"12\"", "host=n1", "note=by hand", "gib=10.5");
    expect_ok(f);
    STORE(f, "export", store, "-o", first, "--jobs", jobs);
    expect_ok(f);
    STORE(f, "import", copy, first);
    expect_ok(f);
    expect_contains(f->result.out, "35 rows added");
    STORE(f, "export", copy, "-o", second, "--jobs", jobs);
    expect_ok(f);
    expect_same_file(first, second);
    char *text = read_text(first);
    expect_contains(text, "\"torch 2.4, CUDA \"\"12\"\"\",n1,");
    expect_contains(text, ",\"dp=4,tp=2\",");
    free(text);
    STORE(f, "list", store);
    expect_contains(f->result.out, "resnet50.onnx            A100-SXM-40GB");
    STORE(f, "list", store, "--gpu", "a100", "--json");
    expect_contains(f->result.out, "\"software\": \"torch 2.4, CUDA \\\"12\\\"\"");
    assert_null(strstr(f->result.out, "K80"));
    STORE(f, "jobs", store);
    expect_contains(f->result.out, "    35       121");
    STORE(f, "check", store);
    expect_contains(f->result.out, "intact: 35 rows, 1 job, 0 outcomes");
    free(store);
    free(copy);
    free(first);
    free(second);
    free(jobs);
}

/* Rows without repetitions are groups of one, so both commands fit the same table. */
static void a_calibration_from_the_store_is_that_of_its_table(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *direct = path_in(f, "direct.cal"), *stored = path_in(f, "stored.cal");
    process_run((const char *const[]){MDOT_CLI, "calibrate", steps, "-o", direct, "-q", NULL}, &f->result);
    expect_ok(f);
    STORE(f, "import", store, steps, "-q");
    STORE(f, "calibrate", store, "-o", stored);
    expect_ok(f);
    expect_contains(f->result.out, "34 new rows; 34 rows read again; 34 groups");
    expect_same_file(direct, stored);
    STORE(f, "add", store, "job=" MDOT_JOBS "/resnet50.onnx", "gpu=K80", "batch=16", "gpus=1", "precision=fp32",
          "ms=436");
    expect_ok(f);
    STORE(f, "calibrate", store, "-o", stored, "--model", MDOT_SHIPPED_PREDICTOR);
    expect_ok(f);
    expect_contains(f->result.out, "1 new row; 2 rows read again; 34 groups");
    RUN(f, resnet, "--gpu", "K80", "--batch", "32", "-c", stored, "-q");
    expect_ok(f);
    expect_contains(f->result.out, "calibrated  by 34 measured steps");
    STORE(f, "calibrate", store);
    assert_int_equal(f->result.status, USAGE);
    free(store);
    free(direct);
    free(stored);
}

static void outliers_are_listed(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *table = path_in(f, "steps.csv");
    write_text(table, "job,gpu,batch,ms,host\n" MDOT_JOBS "/resnet50.onnx,A100,32,100,cool\n" MDOT_JOBS
                      "/resnet50.onnx,A100,32,101,cool\n" MDOT_JOBS "/resnet50.onnx,A100,32,99,cool\n" MDOT_JOBS
                      "/resnet50.onnx,A100,32,150,throttled\n" MDOT_JOBS "/resnet50.onnx,A100,32,1e300,cool\n");
    STORE(f, "import", store, table);
    expect_ok(f);
    STORE(f, "outliers", store);
    expect_ok(f);
    expect_contains(f->result.out,
                    "host throttled, A100-SXM-40GB: steps take 1.500 of the time on other hosts (1 row, ");
    expect_contains(f->result.out, "outliers of these hosts: 1 row\n");
    expect_contains(f->result.out, "absurd: no step takes so long");
    expect_contains(f->result.out, "hardly counted in calibrations: 2 rows\n");
    STORE(f, "outliers", "--json", store);
    expect_contains(f->result.out, "\"host\": \"throttled\"");
    free(store);
    free(table);
}

/* Each action that reads gives a user who may not write the answer that the owner gets. */
static void read_only_places_can_be_read(void **state)
{
    fixture *f = *state;
    static const char *const actions[][2] = {{"list", "--json"},     {"jobs", "--json"},  {"outcomes", "--json"},
                                             {"outliers", "--json"}, {"drift", "--json"}, {"check", "-q"}};
    char *place = path_in(f, "place"), *store = path_in(f, "place/a.store"), *other = path_in(f, "b.store");
    const char *const as_nobody[] = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    const char *command[12] = {NULL};
    size_t prefix = geteuid() == 0 ? 4 : 0;
    memcpy(command, as_nobody, prefix * sizeof *command);
    static const char *const needed[][3] = {{"/usr/bin/test", "-r", MDOT_SHIPPED_PREDICTOR}, {MDOT_STORE, "--version"}};
    bool can_run = mkdir(place, 0755) == 0;
    for (size_t i = 0; i < 2; i++) {
        memcpy(command + prefix, needed[i], sizeof needed[i]);
        can_run = can_run && access(command[0], X_OK) == 0;
        if (can_run) process_run(command, &f->result);
        can_run = can_run && f->result.status == OK;
    }
    STORE(f, "import", other, steps);
    STORE(f, "import", store, steps);
    assert_true(chmod(store, 0444) == 0 && chmod(place, 0555) == 0 && chmod(f->folder, 0755) == 0);
    for (size_t i = 0; can_run && i < sizeof actions / sizeof *actions; i++) {
        STORE(f, actions[i][0], other, actions[i][1]);
        expect_ok(f);
        char *wanted = strdup(f->result.out);
        command[prefix + 1] = actions[i][0];
        command[prefix + 2] = store;
        command[prefix + 3] = actions[i][1];
        process_run(command, &f->result);
        expect_ok(f);
        assert_string_equal(f->result.out, wanted);
        free(wanted);
    }
    chmod(place, 0755);
    free(place);
    free(store);
    free(other);
    if (!can_run) skip(); /* nobody may not enter the folders of the build or the predictor, or there is no setpriv */
}

/* Published steps of ResNet-50 take longer than predicted. A calibration made from them explains it. */
static void drift_compares_measurements_with_the_predictor(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *cal = path_in(f, "a.cal");
    double ratios[3], p[3];
    STORE(f, "import", store, steps, "-q");
    STORE(f, "drift", store, "--json");
    expect_ok(f);
    assert_int_equal(json_numbers(f->result.out, "ratio", ratios, 3), 3);
    for (int i = 0; i < 3; i++) assert_true(ratios[i] > 1.3);
    STORE(f, "calibrate", store, "-o", cal);
    STORE(f, "drift", store, "--json", "-c", cal);
    expect_ok(f);
    assert_int_equal(json_numbers(f->result.out, "ratio", ratios, 3), 3);
    assert_int_equal(json_numbers(f->result.out, "level_p", p, 3), 3);
    for (int i = 0; i < 3; i++) assert_true(ratios[i] < 1.2 && p[i] > 0.05);
    STORE(f, "drift", store);
    expect_ok(f);
    expect_contains(f->result.out, "K80, unknown software: 10 rows, 1 job; measured / predicted ");
    expect_contains(f->result.out, "    level     1 job         z ");
    free(store);
    free(cal);
}

static void accounting_is_imported_and_malformed_lines_are_named(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *text = path_in(f, "sacct.txt"), command[512];
    write_text(text, "JobID|JobName|User|State|Elapsed|Timelimit|AllocTRES\n"
                     "1|train|ada|COMPLETED|01:00:00|02:00:00|gres/gpu:a100=4\n1.batch|batch||COMPLETED|01:00:00||\n"
                     "2|odd|name|bob|TIMEOUT|02:00:00|02:00:00|gres/gpu=1\n");
    STORE(f, "import", store, text);
    expect_ok(f);
    expect_contains(f->result.out, "2 outcomes added, 0 known, 0 updated, 1 step skipped, 0 lines malformed");
    STORE(f, "outcomes", store);
    expect_contains(f->result.out, "timed-out");
    expect_contains(f->result.out, "odd|name");
    STORE(f, "outcomes", store, "--json");
    expect_contains(f->result.out, "\"gpu\": \"a100\", \"gpu_count\": 4");
    write_text(text, "JobID|State\n3|COMPLETED\n4|WHAT\n");
    STORE(f, "import", store, text);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "sacct.txt:3: State is \"WHAT\"");
    expect_contains(f->result.out, "1 outcome added");
    snprintf(command, sizeof command, "printf 'JobID|State\\n5|FAILED\\n' | %s import %s - --cluster here", MDOT_STORE,
             store);
    process_run((const char *const[]){"/bin/sh", "-c", command, NULL}, &f->result);
    expect_ok(f);
    expect_contains(f->result.out, "stdin: 1 outcome added");
    STORE(f, "outcomes", store, "--json");
    expect_contains(f->result.out, "\"cluster\": \"here\"");
    free(store);
    free(text);
}

static void wrong_tables_are_refused_with_their_line(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *table = path_in(f, "steps.csv");
    write_text(table, "job,gpu,batch,ms\n" MDOT_JOBS "/resnet50.onnx,A1000000,1,5\n");
    STORE(f, "import", store, table);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "steps.csv:2");
    write_text(table, "job,gpu,batch,ms\n" MDOT_JOBS "/resnet50.onnx,A100,1,5\nabsent.onnx,A100,1,5\n");
    STORE(f, "import", store, table);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, ":3: ");
    STORE(f, "add", store, "gpu=A100", "bacth=1");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "bacth");
    free(store);
    free(table);
}

#define RESNET MDOT_JOBS "/resnet50.onnx"

/* A failed import leaves nothing where no store was, and another store as it was. Rows of earlier files stay. */
static void a_failed_import_leaves_no_trace(void **state)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "a,b\n1,2\n",
                                        "job,gpu,batch\n" RESNET ",A100,1\n",
                                        "job,gpu,batch,ms\nabsent.onnx,A100,1,5\n",
                                        "job,gpu,batch,ms\n" RESNET ",X1,1,5\n",
                                        "job,gpu,batch,ms\n" RESNET ",A100,0,5\n",
                                        "job,gpu,batch,ms\n" RESNET ",A100,1,-5\n",
                                        "job,gpu,batch,ms\n" RESNET ",A100,1,nan\n",
                                        "job,gpu,batch,ms\n" RESNET ",A100,1,5\n" RESNET ",A100,1,\n",
                                        "job,gpu,batch,ms,digest\n" RESNET ",A100,1,5,abc\n",
                                        "job,gpu,batch,ms,measured_at\n" RESNET ",A100,1,5,yesterday\n",
                                        "job,gpu,batch,ms\n\"" RESNET ",A100,1,5\n",
                                        "job,gpu,batch,ms,bacth\n" RESNET ",A100,1,5,2\n",
                                        "JobID|State\n4|WHAT\n",
                                        "JobID|Start\n4|WHAT\n"};
    fixture *f = *state;
    char *folder = path_in(f, "place"), *store = path_in(f, "place/new.store"), *table = path_in(f, "bad.csv"),
         *before = path_in(f, "before.csv"), *after = path_in(f, "after.csv"), *old = path_in(f, "old.store");
    assert_int_equal(mkdir(folder, 0777), 0);
    STORE(f, "import", old, steps, "-q");
    STORE(f, "export", old, "-o", before);
    for (size_t i = 0; i <= sizeof texts / sizeof *texts; i++) {
        bool is_text = i < sizeof texts / sizeof *texts;
        if (is_text) write_text(table, texts[i]);
        STORE(f, "import", store, is_text ? table : "no-such.csv");
        if (f->result.status != FAILED) fail_msg("%s: status %d", is_text ? texts[i] : "", f->result.status);
        if (rmdir(folder) != 0) fail_msg("%s: files are left", is_text ? texts[i] : "");
        assert_int_equal(mkdir(folder, 0777), 0);
        STORE(f, "import", old, is_text ? table : "no-such.csv");
        assert_int_equal(f->result.status, FAILED);
        STORE(f, "export", old, "-o", after);
        expect_same_file(before, after);
    }
    STORE(f, "add", store, "job=" RESNET, "gpu=A100", "batch=0", "ms=5");
    assert_int_equal(f->result.status, FAILED);
    assert_int_equal(rmdir(folder), 0);
    STORE(f, "import", store, steps, "-q");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "place/new.store: ");
    assert_int_equal(mkdir(folder, 0777), 0);
    STORE(f, "import", store, steps, table);
    assert_int_equal(f->result.status, FAILED);
    STORE(f, "export", store, "-o", after);
    expect_same_file(before, after);
    free(folder);
    free(store);
    free(table);
    free(before);
    free(after);
    free(old);
}

static void a_damaged_store_names_its_remedy_which_works(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), *copy = path_in(f, "b.store"), *first = path_in(f, "a.csv"),
         *second = path_in(f, "b.csv");
    STORE(f, "import", store, steps, "-q");
    STORE(f, "export", store, "-o", first);
    FILE *file = fopen(store, "r+b");
    for (int i = 0; i < 4096; i++) fputc(0xee, file);
    fclose(file);
    STORE(f, "list", store);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "the store is damaged");
    expect_contains(f->result.err, "mdot-store recover");
    STORE(f, "recover", store, copy);
    expect_ok(f);
    expect_contains(f->result.out, "34 rows, 1 job and 0 outcomes copied");
    STORE(f, "export", copy, "-o", second);
    expect_ok(f);
    expect_same_file(first, second);
    STORE(f, "recover", store, copy);
    assert_int_equal(f->result.status, FAILED);
    STORE(f, "migrate", copy);
    expect_contains(f->result.out, "version 1 of the tables is the newest");
    free(store);
    free(copy);
    free(first);
    free(second);
}

/* The file size limit fails writes like a full disk; the signal would end the command without a message. */
static void a_full_disk_is_reported(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store"), command[1024];
    STORE(f, "import", store, steps, "-q");
    expect_ok(f);
    snprintf(command, sizeof command, "ulimit -f 8; exec %s add %s job=%s gpu=A100 batch=1 ms=5", MDOT_STORE, store,
             resnet);
    process_run((const char *const[]){"/bin/sh", "-c", command, NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "mdot-store: ");
    STORE(f, "check", store);
    expect_contains(f->result.out, "intact: 34 rows");
    free(store);
}

static void wrong_command_lines_are_usage_errors(void **state)
{
    fixture *f = *state;
    char *store = path_in(f, "a.store");
    STORE(f, "list");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "expected `mdot-store list STORE`");
    STORE(f, "import", store);
    assert_int_equal(f->result.status, USAGE);
    STORE(f, "lost", store);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "did you mean list");
    STORE(f, "export", store, "--since", "yesterday");
    assert_int_equal(f->result.status, USAGE);
    STORE(f, "export", store, "--gpu", "nonsense");
    assert_int_equal(f->result.status, USAGE);
    STORE(f, "calibrate", store, "-o", "x.cal", "--gpu", "nonsense");
    assert_int_equal(f->result.status, USAGE);
    STORE(f, "calibrate", store, "-o", "x.cal", "--since", "2026-11-24");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "`mdot-store calibrate` takes no --since");
    STORE(f, "drift", store, "--gpu", "A100");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "`mdot-store drift` takes no --gpu");
    STORE(f, "add", store, "gpu");
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_STORE, NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    STORE(f, "list", store);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "there is no such store");
    STORE(f, "drift", store);
    assert_int_equal(f->result.status, FAILED);
    free(store);
}

/* The help, and pages that are made from the same table. MDOT_UPDATE_GOLDEN writes the page of the manual. */
static void help_man_page_and_completion_have_every_option(void **state)
{
    static const char golden[] = MDOT_CLUSTER_DIR "/store/mdot-store.md";
    fixture *f = *state;
    STORE(f, "--markdown");
    expect_ok(f);
    if (getenv("MDOT_UPDATE_GOLDEN") != NULL) write_text(golden, f->result.out);
    char *text = read_text(golden);
    assert_string_equal(f->result.out, text);
    free(text);
    STORE(f, "--help");
    expect_ok(f);
    text = strdup(f->result.out);
    assert_non_null(text);
    static process_result pages[3];
    process_run((const char *const[]){MDOT_STORE, "--markdown", NULL}, &pages[0]);
    process_run((const char *const[]){MDOT_STORE, "--completion=bash", NULL}, &pages[1]);
    process_run((const char *const[]){MDOT_STORE, "--completion=zsh", NULL}, &pages[2]);
    for (const char *option = text; (option = strstr(option, " --")) != NULL;) {
        char name[32];
        option += 3;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(option, " \n=],.`"), option);
        for (int i = 0; i < 3; i++) expect_contains(pages[i].out, name);
    }
    for (int i = 0; i < 3; i++) expect_contains(pages[i].out, "outliers");
    STORE(f, "--version");
    expect_ok(f);
    expect_contains(f->result.out, "mdot-store " MDOT_VERSION_STRING);
    STORE(f, "--completion=fish");
    assert_int_equal(f->result.status, USAGE);
    free(text);
}

/* store/example.c, the example of the reference. */
static void the_example_runs(void **state)
{
    fixture *f = *state;
    char *job = path_in(f, "resnet50.job");
    process_run((const char *const[]){MDOT_CLI, "extract", MDOT_JOBS "/resnet50.onnx", "-o", job, NULL}, &f->result);
    expect_ok(f);
    process_run((const char *const[]){MDOT_STORE_EXAMPLE, job, f->folder, NULL}, &f->result);
    expect_ok(f);
    expect_contains(f->result.out, "8 rows saved");
    free(job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(tables_go_in_and_out_unchanged),
        CASE(a_calibration_from_the_store_is_that_of_its_table),
        CASE(outliers_are_listed),
        CASE(read_only_places_can_be_read),
        CASE(drift_compares_measurements_with_the_predictor),
        CASE(accounting_is_imported_and_malformed_lines_are_named),
        CASE(a_failed_import_leaves_no_trace),
        CASE(wrong_tables_are_refused_with_their_line),
        CASE(a_damaged_store_names_its_remedy_which_works),
        CASE(a_full_disk_is_reported),
        CASE(wrong_command_lines_are_usage_errors),
        CASE(help_man_page_and_completion_have_every_option),
        CASE(the_example_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
