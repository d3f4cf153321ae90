/* service_fixture.c — see service_fixture.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/command/command.h"
#include "base/file.h"
#include "tests/service/support/service_fixture.h"
#include "tests/support/process.h"

const cli_command cli_program = {.name = "mdotd"}; /* named in messages */

const char *service_ask_bytes(service_fixture *f, const char *path, const char *query, const void *body, size_t size,
                              int status)
{
    const sv_request request = {
        .method = "POST", .path = path, .query = query, .body = body, .body_bytes = size, .now_s = 1764000000};
    sv_answer_free(&f->answer);
    free(f->text);
    sv_handle(&f->state, &request, &f->answer);
    f->text = calloc(1, f->answer.body_bytes + 1);
    assert_non_null(f->text);
    memcpy(f->text, f->answer.body, f->answer.body_bytes);
    if (f->answer.status != status) fail_msg("%s: %d, not %d: %.500s", path, f->answer.status, status, f->text);
    return f->text;
}

const char *service_ask(service_fixture *f, const char *method, const char *path, const char *body, int status)
{
    if (strcmp(method, "POST") == 0) return service_ask_bytes(f, path, "", body, strlen(body), status);
    const sv_request request = {.method = method, .path = path, .query = ""};
    sv_answer_free(&f->answer);
    free(f->text);
    sv_handle(&f->state, &request, &f->answer);
    f->text = calloc(1, f->answer.body_bytes + 1);
    assert_non_null(f->text);
    memcpy(f->text, f->answer.body, f->answer.body_bytes);
    if (f->answer.status != status) fail_msg("%s: %d, not %d: %.500s", path, f->answer.status, status, f->text);
    return f->text;
}

void service_job_of(const char *answer, char out[SV_SHA256_TEXT])
{
    static const char key[] = "\"job\": \"";
    const char *found = strstr(answer, key);
    assert_non_null(found);
    snprintf(out, SV_SHA256_TEXT, "%s", found + sizeof key - 1);
}

static void post(service_fixture *f, const char *path, const char *query, char out_digest[SV_SHA256_TEXT])
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(bs_read_file(path, &bytes, &size, NULL), MDOT_OK);
    service_job_of(service_ask_bytes(f, "/v1/jobs", query, bytes, size, 200), out_digest);
    free(bytes);
}

int service_set_up(void **state)
{
    service_fixture *f = calloc(1, sizeof *f);
    mdot_error err = {0};
    if (f == NULL) return -1;
    setenv("MDOT_PREDICTOR", MDOT_SHIPPED_PREDICTOR, 1);
    f->folder = process_make_folder();
    f->store = process_in_folder(f->folder, "steps.store");
    f->state = (sv_state){.reader = {.program = MDOTD, .folder = f->folder, .seconds = 60, .memory_mib = 2048},
                          .threads = 6,
                          .plan_threads = 2,
                          .plan_seconds = 600,
                          .store_path = f->store};
    if (sv_state_open(&f->state, (size_t)256 << 20, &err) != MDOT_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    post(f, MDOT_JOBS "/resnet50.onnx", "", f->resnet);
    post(f, MDOT_JOBS "/bert_base.onnx", "dim=sequence%3D128", f->bert);
    *state = f;
    return 0;
}

int service_tear_down(void **state)
{
    service_fixture *f = *state;
    sv_answer_free(&f->answer);
    free(f->text);
    sv_state_close(&f->state);
    process_remove_folder(f->folder);
    free(f->store);
    free(f);
    return 0;
}
