/* test_site.c — mdot.conf: every valid line, and the messages for invalid ones. */
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

#include <math.h>

#include "slurm/request.h"
#include "slurm/site.h"
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

#define LEAST "Predictor=/p.mdot\nPartition=a Gpu=A100 MaxTime=60\n"

static char *folder;
static char path[512];

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    snprintf(path, sizeof path, "%s/mdot.conf", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

static mdot_status read_text(const char *text, sl_site *out, mdot_error *err)
{
    small_job_write_file(path, text, strlen(text));
    return sl_site_read(path, out, err);
}

static sl_site reads(const char *text)
{
    sl_site site;
    mdot_error err = {0};
    if (read_text(text, &site, &err) != MDOT_OK) fail_msg("%s", err.message);
    return site;
}

static void refuses(const char *text, mdot_status status, const char *reason)
{
    sl_site site = {.margin = 7};
    mdot_error err = {0};
    assert_int_equal(read_text(text, &site, &err), status);
    expect_contains(err.message, path);
    expect_contains(err.message, reason);
    expect_number(site.margin, 7);
}

static void every_line_sets_its_field(void **state)
{
    (void)state;
    sl_site s = reads("# a site\n\nPredictor=/a/p.mdot # "
                      "there\nCalibration=/a/site.cal\nquantile=0.9\nMargin=1.5\nStartup=1:30\nLimitDoubtful=yes\n"
                      "LimitByHistory=yes\nTrees=/a/durations.mdot\nMaxOperators=77\n"
                      "PriorityWeight=1000\nPriorityOrder=time\nPriorityShortest=2\nPriorityLongest=2-0\nChoose=cost\n"
                      "MaxJobBytes=5000\nMaxMilliseconds=7\n"
                      "Partition=x Gpu=a100 Type=A100 MaxTime=1-12:30 Price=2.5\n"
                      "  Partition=y\tGpu=NVIDIA-H100-SXM-80GB MaxTime=UNLIMITED Price=8");
    assert_string_equal(s.predictor, "/a/p.mdot");
    assert_string_equal(s.calibration, "/a/site.cal");
    assert_string_equal(s.trees, "/a/durations.mdot");
    expect_number(s.quantile, .9);
    expect_number(s.margin, 1.5);
    expect_number(s.startup_s, 90);
    assert_true(s.limits_doubtful);
    assert_true(s.limits_by_history);
    expect_number(s.most_work, 77);
    expect_number(s.priority_weight, 1000);
    assert_int_equal(s.order, SL_ORDER_TIME);
    expect_number(s.shortest_s, 120);
    expect_number(s.longest_s, 172800);
    assert_int_equal(s.choice, SL_CHOOSE_COST);
    expect_number(s.most_job_bytes, 5000);
    expect_number(s.patience_ms, 7);
    assert_int_equal(s.place_count, 2);
    assert_string_equal(s.places[0].partition, "x");
    assert_string_equal(s.places[0].gpu, "A100-SXM-40GB");
    assert_string_equal(s.places[0].type, "a100");
    expect_number(s.places[0].price, 2.5);
    expect_number(s.places[0].most_s, 36.5 * 3600);
    assert_string_equal(s.places[1].partition, "y");
    assert_string_equal(s.places[1].gpu, "H100-SXM-80GB");
    expect_number(s.places[1].type[0], '\0');
    assert_true(isinf(s.places[1].most_s));
}

static void the_ends_of_ranges_are_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *key, *least, *most, *below, *above;
    } cases[] = {{"UserMilliseconds", "0", "60000", "-0.1", "60001"}, {"MaxMilliseconds", "0", "1000", "-0.1", "1001"},
                 {"Quantile", "0.01", "0.999", "0.009", "0.9991"},    {"Margin", "0.1", "100", "0.09", "100.1"},
                 {"PriorityWeight", "0", "1e9", "-1", "1000000001"},  {"MaxOperators", "1", "1e9", "0", "1000000001"},
                 {"MaxJobBytes", "1", "786432", "0", "786433"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const values[] = {cases[i].least, cases[i].most, cases[i].below, cases[i].above};
        for (int k = 0; k < 4; k++) {
            char text[256];
            snprintf(text, sizeof text, "Predictor=/a/p.mdot\nPartition=x Gpu=T4\n%s=%s\n", cases[i].key, values[k]);
            if (k < 2)
                reads(text);
            else
                refuses(text, MDOT_MALFORMED, cases[i].key);
        }
    }
}

static void names_of_types_have_a_limit(void **state)
{
    (void)state;
    char text[256], type[SL_GRES_TYPE_BYTES + 1];
    memset(type, 'a', sizeof type);
    type[SL_GRES_TYPE_BYTES - 1] = '\0';
    snprintf(text, sizeof text, "Predictor=/a/p.mdot\nPartition=x Gpu=T4 Type=%s\n", type);
    assert_string_equal(reads(text).places[0].type, type);
    type[SL_GRES_TYPE_BYTES - 1] = 'a';
    type[SL_GRES_TYPE_BYTES] = '\0';
    snprintf(text, sizeof text, "Predictor=/a/p.mdot\nPartition=x Gpu=T4 Type=%s\n", type);
    refuses(text, MDOT_MALFORMED, "Type has more than 63 characters");
}

static void omitted_lines_keep_defaults(void **state)
{
    (void)state;
    sl_site s = reads(LEAST);
    expect_number(s.quantile, .95);
    expect_number(s.margin, 1.1);
    expect_number(s.startup_s, 600);
    assert_false(s.limits_doubtful);
    assert_false(s.limits_by_history);
    expect_number(s.priority_weight, 0);
    assert_int_equal(s.order, SL_ORDER_SERVICE);
    assert_int_equal(s.choice, SL_CHOOSE_NOT);
    expect_number(s.most_job_bytes, 128 * 1024);
    expect_number(s.patience_ms, 20);
}

static void faults_name_their_line(void **state)
{
    (void)state;
    refuses("", MDOT_MALFORMED, "Predictor is missing");
    refuses("Predictor=p.mdot\n", MDOT_MALFORMED, "not an absolute path");
    refuses("Predictor=/p.mdot\n", MDOT_MALFORMED, "no Partition line");
    refuses(LEAST "Calibration=site.cal\n", MDOT_MALFORMED, "Calibration is not an absolute path");
    refuses(LEAST "Quantil=1\n", MDOT_MALFORMED, ":3: Quantil is not a setting");
    refuses(LEAST "Quantile\n", MDOT_MALFORMED, ":3: \"Quantile\" must have the form KEY=VALUE");
    refuses(LEAST "Quantile=\n", MDOT_MALFORMED, "must have the form KEY=VALUE");
    refuses(LEAST "=1\n", MDOT_MALFORMED, "must have the form KEY=VALUE");
    refuses(LEAST "Quantile=1\n", MDOT_MALFORMED, "from 0.01 to 0.999");
    refuses(LEAST "Margin=nan\n", MDOT_MALFORMED, "Margin must be a number");
    refuses(LEAST "Startup=soon\n", MDOT_MALFORMED, "Startup must be a time");
    refuses(LEAST "Startup=INFINITE\n", MDOT_MALFORMED, "Startup is infinite");
    refuses(LEAST "Choose=best\n", MDOT_MALFORMED, "Choose is \"best\"");
    refuses(LEAST "Choose=cost\n", MDOT_MALFORMED, "Choose=cost requires a Price for Partition=a");
    refuses(LEAST "Margin=1 Startup=1\n", MDOT_MALFORMED, "Startup cannot begin a line");
    refuses(LEAST "PriorityShortest=2\nPriorityLongest=2\n", MDOT_MALFORMED, "must be less than");
    refuses(LEAST "Partition=b MaxTime=1\n", MDOT_MALFORMED, "Partition=b has no Gpu");
    refuses(LEAST "Partition=b Gpu=A100 MaxTime=0\n", MDOT_MALFORMED, "Partition=b has MaxTime=0");
    refuses("Outcomes=here\n" LEAST, MDOT_MALFORMED, "Outcomes is not an absolute path");
    refuses("History=here\n" LEAST, MDOT_MALFORMED, "History is not an absolute path");
    refuses("Trees=here\n" LEAST, MDOT_MALFORMED, "Trees is not an absolute path");
    refuses("LimitByHistory=perhaps\n" LEAST, MDOT_MALFORMED, "LimitByHistory is \"perhaps\"");
    refuses(LEAST "Partition=b Gpu=A101 MaxTime=1\n", MDOT_INVALID_ARGUMENT, ":3: ");
    refuses(LEAST "Partition=b Gpu=A100 MaxTime=1 Color=red\n", MDOT_MALFORMED,
            "Color is not a setting of a Partition");
    refuses(LEAST "Partition=a Gpu=H100 MaxTime=1\n", MDOT_MALFORMED, "Partition=a Type= occurs twice");
    sl_site site;
    mdot_error err = {0};
    int files = dup(STDERR_FILENO);
    close(files);
    assert_int_equal(sl_site_read("/nowhere/mdot.conf", &site, &err), MDOT_NOT_FOUND);
    assert_int_equal(sl_site_read(folder, &site, &err), MDOT_INVALID_ARGUMENT);
    remove(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* reading it would block */
    assert_int_equal(sl_site_read(path, &site, &err), MDOT_INVALID_ARGUMENT);
    remove(path);
    int next = dup(STDERR_FILENO);
    close(next);
    assert_int_equal(next, files); /* no file stays open */
}

static void long_lines_and_long_files_are_refused(void **state)
{
    (void)state;
    char text[8192] = LEAST "#";
    memset(text + strlen(text), 'x', 3000);
    refuses(text, MDOT_MALFORMED, ":3: more than");
    memset(text, 0, sizeof text);
    strcpy(text, LEAST "Partition=");
    memset(text + strlen(text), 'x', SL_PARTITION_BYTES);
    strcat(text, " Gpu=A100 MaxTime=1\n");
    refuses(text, MDOT_MALFORMED, "Partition has more than 63 characters");
    memset(text, 0, sizeof text);
    strcpy(text, LEAST);
    for (int i = 1; i <= SL_MAX_PLACES; i++) snprintf(text + strlen(text), 64, "Partition=p%d Gpu=A100 MaxTime=1\n", i);
    refuses(text, MDOT_MALFORMED, "more than 64 lines of partitions");
}

static void times_use_the_slurm_format(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } times[] = {{"90", 5400},       {"1:30", 90},          {"1:30:15", 5415},     {"2-1", 176400},
                 {"2-1:30", 178200}, {"2-1:30:15", 178215}, {"infinite", INFINITY}};
    double seconds;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        assert_true(sl_read_time_s(times[i].text, &seconds));
        expect_number(seconds, times[i].seconds);
    }
    static const char *const wrong[] = {"",      "-1",  "1-",   "1:", ":1",       "1:2:3:4",
                                        "1-2-3", "1.5", "0x10", "1 ", "1-2:3:4:5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_false(sl_read_time_s(wrong[i], &seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_sets_its_field),   cmocka_unit_test(the_ends_of_ranges_are_accepted),
        cmocka_unit_test(names_of_types_have_a_limit), cmocka_unit_test(omitted_lines_keep_defaults),
        cmocka_unit_test(faults_name_their_line),      cmocka_unit_test(long_lines_and_long_files_are_refused),
        cmocka_unit_test(times_use_the_slurm_format),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
