/* test_cli_report.c — `mdot report`: one page with everything in it, well-formed, that asks for nothing from elsewhere
 * and writes names so that they stay text. tests/browser/report.sh opens one in a browser. */
#include <ctype.h>
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

#include "tests/support/predict_command.h"

enum { MAX_BYTES = 1 << 19, MAX_DEPTH = 64 };

static void read_page(const char *path, char *out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, MAX_BYTES - 1, file);
    fclose(file);
    assert_true(size > 1000 && size < MAX_BYTES - 1);
    out[size] = '\0';
}

/* Every element that is opened is closed, in order. */
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
            assert_true(depth < MAX_DEPTH);
            strcpy(open[depth++], name);
        } else if (depth == 0 || strcmp(open[--depth], name) != 0) {
            fail_msg("</%s> closes <%s>", name, open[depth]);
        }
    }
    assert_int_equal(depth, 0);
}

static void a_page_holds_everything_itself(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL;
    assert_true(asprintf(&path, "%s/page.html", f->folder) > 0);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, bert, "-o", path, "--gpu", "T4,A100", "--dim",
                                      "sequence=64", "--precision", "amp", "-q", NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    read_page(path, page);
    assert_well_formed(page);
    static const char *const held[] = {"resnet50.onnx</h1>",
                                       "bert_base.onnx</h1>",
                                       "<h2>On each GPU</h2>",
                                       "<h2>Time against batch</h2>",
                                       "<h2>Where the time goes</h2>",
                                       "<h2>By operator, on ",
                                       "<h2>Memory, and what each card has</h2>",
                                       "<h2>What to keep in mind</h2>",
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

static void names_stay_text(void **state)
{
    predict_command *f = *state;
    static char page[MAX_BYTES];
    char *path = NULL, *job = NULL;
    assert_true(asprintf(&path, "%s/page.html", f->folder) > 0);
    assert_true(asprintf(&job, "%s/<script>alert(1)&.onnx", f->folder) > 0);
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

static void wrong_lines_are_refused(void **state)
{
    predict_command *f = *state;
    process_run((const char *const[]){MDOT_CLI, "report", resnet, NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "report", "-o", "x.html", NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "-o", resnet, "-q", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    process_run((const char *const[]){MDOT_CLI, "report", bert, "-o", "/dev/null/x.html", "-q", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "mdot report: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_holds_everything_itself, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(names_stay_text, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(wrong_lines_are_refused, predict_command_set_up, predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
