/* test_cli_report.c — `mdot report`: one self-contained, well-formed page. It requests nothing from elsewhere, and
 * names are escaped so that they stay text. tests/browser/report.sh opens a page in a browser. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

enum { MAX_BYTES = 1 << 19, MAX_DEPTH = 64 };

static void read_page(const char *path, char *out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, MAX_BYTES - 1, file);
    fclose(file);
    assert_compare(size, >, 1000);
    assert_compare(size, <, MAX_BYTES - 1);
    out[size] = '\0';
}

/* Every opened element is closed, in order. */
static void assert_well_formed(const char *page)
{
    static const char *const empty[] = {"meta", "!DOCTYPE"};
    char open[MAX_DEPTH][16];
    int depth = 0;
    for (const char *at = strchr(page, '<'); at != NULL; at = strchr(at + 1, '<')) {
        bool closes = at[1] == '/', is_empty = false;
        char name[16] = "";
        const char *start = at + 1 + closes, *end = strchr(at, '>');
        assert_non_null(end);
        for (size_t i = 0; i < sizeof name - 1 && (isalnum((unsigned char)start[i]) || start[i] == '!'); i++)
            name[i] = start[i];
        for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) is_empty = is_empty || strcmp(name, empty[i]) == 0;
        if (is_empty || end[-1] == '/') continue;
        if (!closes) {
            assert_compare(depth, <, MAX_DEPTH);
            strcpy(open[depth++], name);
        } else if (depth == 0 || strcmp(open[--depth], name) != 0) {
            fail_msg("</%s> closes <%s>", name, open[depth]);
        }
    }
    assert_int_equal(depth, 0);
}

static void a_page_is_self_contained(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, bert, "-o", path, "--gpu", "H20,A100", "--dim",
                                      "sequence=64", "--precision", "amp", "-q", NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_well_formed(page);
    static const char *const held[] = {"resnet50.onnx</h1>",
                                       "bert_base.onnx</h1>",
                                       "<h2>On each GPU</h2>",
                                       "<h2>Time against batch</h2>",
                                       "<h2>Time by phase</h2>",
                                       "<h2>By operator, on ",
                                       "<h2>Memory of the job and of each GPU</h2>",
                                       "<h2>Warnings</h2>",
                                       "A100-SXM-40GB"};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (strstr(page, held[i]) == NULL) fail_msg("%s is not there", held[i]);
    assert_non_null(strstr(page, "content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    static const char *const elsewhere[] = {"http:", "https:",  "<script", "<link", "<img",
                                            "url(",  "@import", "nan",     "inf "};
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strstr(page, elsewhere[i]) != NULL) fail_msg("%s is there", elsewhere[i]);
    free(path);
}

/* Numbers from 1000 on have separators instead of an exponent. Every drawing has a narrow form, whose text stays inside
 * 360 units. */
static void numbers_and_widths_suit_readers(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    process_run(
        (const char *const[]){MDOT_CLI, "report", resnet, "-o", path, "--gpu", "T4,K80", "--batch=512", "-q", NULL},
        &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_well_formed(page);
    for (const char *at = page; (at = strstr(at, "e+0")) != NULL; at++)
        if (at[-1] >= '0' && at[-1] <= '9') fail_msg("an exponent is there: %.40s", at - 8);
    assert_non_null(strstr(page, ",000</text>")); /* on the axis of step times */
    assert_null(strstr(page, "min-width"));
    size_t wide = 0, narrow = 0;
    for (const char *at = page; (at = strstr(at, "<svg class=\"wide\" viewBox=\"0 0 860 ")) != NULL; at++) wide++;
    for (const char *at = page; (at = strstr(at, "<svg class=\"narrow\" viewBox=\"0 0 360 ")) != NULL; at++) narrow++;
    size_t large = 0;
    for (const char *at = page; (at = strstr(at, "<svg class=\"large\" viewBox=\"0 0 1180 ")) != NULL; at++) large++;
    assert_int_equal(large, 4);
    assert_int_equal(wide, 4);
    assert_int_equal(narrow, 4);
    const char *drawing = strstr(page, "<svg class=\"narrow\""), *end = strstr(drawing, "</svg>");
    for (const char *at = drawing; (at = strstr(at, " x=\"")) != NULL && at < end; at++)
        assert_compare(strtod(at + 4, NULL), <=, 360);
    free(path);
}

/* GPUs waiting for the host are about equally fast, so none is called the fastest. */
static void gpus_that_wait_for_the_host_are_equal(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "-o", path, "--gpu", "H200,H100,RTX-4090",
                                      "--batch=1", "--host-launch-us=50", "-q", NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_non_null(strstr(page, "<b>3 GPUs</b><span>wait for the host"));
    assert_null(strstr(page, "fastest GPU"));
    process_run(
        (const char *const[]){MDOT_CLI, "report", resnet, "-o", path, "--gpu", "A100,T4", "--batch=64", "-q", NULL},
        &f->result);
    read_page(path, page);
    assert_non_null(strstr(page, "<b>A100-SXM-40GB</b><span>fastest GPU"));
    free(path);
}

/* Relative luminance as defined by WCAG 2.2. */
static double luminance(uint32_t colour)
{
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double value = (double)(colour >> (16 - 8 * i) & 0xff) / 255;
        sum += weights[i] * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4));
    }
    return sum;
}

/* Returns "--name:#rgb" or "--name:#rrggbb" from the palette at `css`. */
static uint32_t colour_of(const char *css, const char *name)
{
    char key[16];
    snprintf(key, sizeof key, "--%s:#", name);
    const char *at = strstr(css, key);
    assert_non_null(at);
    char *end;
    uint32_t value = (uint32_t)strtoul(at + strlen(key), &end, 16);
    if (end - at - (ptrdiff_t)strlen(key) == 6) return value;
    return (value >> 8 & 0xf) * 0x110000 + (value >> 4 & 0xf) * 0x1100 + (value & 0xf) * 0x11;
}

static void assert_contrast(const char *css, const char *name, double least)
{
    static const char *const grounds[] = {"paper", "sheet"};
    for (int i = 0; i < 2; i++) {
        double a = luminance(colour_of(css, name)), b = luminance(colour_of(css, grounds[i]));
        double contrast = (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
        if (contrast < least) fail_msg("--%s has a contrast of %.2f on --%s", name, contrast, grounds[i]);
    }
}

/* WCAG 2.2, level AA: a contrast of 4.5 to 1 for text, and 3 to 1 for graphics. */
static void colours_are_legible_in_light_and_dark_mode(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    static const char *const texts[] = {"ink", "soft", "good", "bad"};
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "-q", "-o", path, NULL}, &f->result);
    assert_int_equal(f->result.status, OK);
    read_page(path, page);
    const char *night = strstr(page, "(prefers-color-scheme:dark)");
    assert_non_null(night);
    const char *const palettes[] = {strstr(page, ":root{"), night};
    for (int p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_contrast(palettes[p], texts[i], 4.5);
        for (int line = 0; line < 8; line++) {
            char name[] = {'p', (char)('0' + line), '\0'};
            assert_contrast(palettes[p], name, 3);
        }
    }
    free(path);
}

/* A page has a row for each line of `mdot predict` with the same options, with its time. */
static void a_page_has_the_rows_of_predict(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    static const char *const cases[][6] = {
        {"--gpu=T4,A100", "--torch=1.11,1.12"},
        {"--gpu=A100", "--gpus=1,2,4,8", "--precision=fp32,bf16", "--measured=gpus=1,precision=fp32,batch=64,ms=300"},
        {"--gpu=A100,H100", "--parallel=dp=2,tp=1,2", "--batch=16,64", "--sort=time", "--gpus=2,4"},
        {"--gpu=A100,T4", "--sweep=sequence=64,128", "--checkpoint=nothing,blocks", "--fit"},
        {"--gpu=A100", "--parallel=pp=1,2,4,8,16", "--gpus=16", "--batch=64", "--sort=cost", "--price=2"},
        {"--gpu=L40S", "--optimizer=sgd,adamw", "--compile", "--steps=1000", "--price=1.5", "--batch=32"}};
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum { MOST = 64 };
        double ms[MOST];
        const char *argv[16] = {MDOT_CLI, "predict", bert, "-q", "--json", i == 2 || i >= 3 ? "-q" : "--batch=32"};
        size_t count = 6;
        if (i != 3) argv[count++] = "--dim=sequence=128";
        for (size_t k = 0; k < 6 && cases[i][k] != NULL; k++) argv[count++] = cases[i][k];
        process_run(argv, &f->result);
        if (f->result.status != OK) fail_msg("case %zu: %s", i, f->result.err);
        size_t rows = json_numbers(f->result.out, "step_ms", ms, MOST);
        assert_compare(rows, >, 1);
        char output[512];
        snprintf(output, sizeof output, "--output=%s", path);
        argv[1] = "report";
        argv[4] = output;
        process_run(argv, &f->result);
        if (f->result.status != OK) fail_msg("case %zu: %s", i, f->result.err);
        read_page(path, page);
        assert_well_formed(page);
        const char *row = strstr(page, "<h2>On each GPU</h2>"), *end = strstr(row, "</table>");
        size_t shown = 0;
        row = strstr(row, "</tr>"); /* behind the headings */
        for (; (row = strstr(row + 1, "<tr")) != NULL && row < end; shown++) {
            char text[32], digits[32];
            const char *cell = strstr(row, "</td><td>") + strlen("</td><td>");
            size_t length = 0;
            for (; *cell != '<'; cell++)
                if (*cell != ',') digits[length++] = *cell;
            digits[length] = '\0';
            assert_compare(shown, <, rows);
            snprintf(text, sizeof text, "%.3g", ms[shown]);
            if (fabs(strtod(digits, NULL) - strtod(text, NULL)) > 5.1e-3 * ms[shown])
                fail_msg("case %zu, row %zu: %s ms, predicted %s", i, shown, digits, text);
        }
        assert_int_equal(shown, rows);
    }
    process_run((const char *const[]){MDOT_CLI, "report", bert, resnet, "-o", path, "--measured", "ms=3", NULL},
                &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run(
        (const char *const[]){MDOT_CLI, "report", resnet, "-o", path, "--gpus=1..32", "--batch=1..1024", "-q", NULL},
        &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "at most 48 rows");
    free(path);
}

static void names_are_escaped(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL, *job = NULL;
    assert_compare(asprintf(&path, "%s/page.html", f->folder), >, 0);
    assert_compare(asprintf(&job, "%s/<script>alert(1)&.onnx", f->folder), >, 0);
    assert_int_equal(symlink(resnet, job), 0);
    process_run((const char *const[]){MDOT_CLI, "report", job, "-o", path, "--gpu-spec",
                                      "name=<b>\"X\",tflops=100,memory=24,bandwidth=900", "-q", NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_well_formed(page);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<b>\""));
    assert_non_null(strstr(page, "&#60;script&#62;alert(1)&#38;.onnx"));
    assert_non_null(strstr(page, "&#60;b&#62;&#34;X&#34;"));
    free(path);
    free(job);
}

/* The page takes the length and the price that `mdot predict` takes, draws no batch that fits nowhere, and has space
 * for the longest operator's name. */
static void a_page_has_the_cost_and_whole_names(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/cost.html", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "report", bert, "-o", path, "--gpu", "T4,RTX-3090", "--dim",
                                      "sequence=512", "--epochs", "3", "--dataset", "10000", "--price", "2/h", "-q",
                                      NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_well_formed(page);
    expect_contains(page, "<th>hours</th><th>cost</th></tr>");
    assert_null(strstr(page, ">1024<"));
    expect_contains(page, ">16<");
    for (const char *name = page; (name = strstr(name, "<text class=\"name\" x=\"")) != NULL; name++) {
        double end = strtod(name + strlen("<text class=\"name\" x=\""), NULL);
        const char *text = strchr(name, '>') + 1;
        if (end > 0 && strstr(name, "\"end\"") < text) assert_compare(7.4 * (double)strcspn(text, "<"), <, end);
    }
    free(path);
}

static void wrong_command_lines_are_refused(void **state)
{
    predict_command *f = *state;
    process_run((const char *const[]){MDOT_CLI, "report", resnet, NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "report", "-o", "x.html", NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "-o", resnet, "-q", NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "report", bert, "-o", "/dev/null/x.html", "-q", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "mdot report: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_and_widths_suit_readers, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(gpus_that_wait_for_the_host_are_equal, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_page_is_self_contained, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(colours_are_legible_in_light_and_dark_mode, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_page_has_the_rows_of_predict, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(names_are_escaped, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_page_has_the_cost_and_whole_names, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(wrong_command_lines_are_refused, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
