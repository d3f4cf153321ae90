/* test_service_answers.c — the other endpoints: layouts, measured steps, durations, GPUs, health and metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sqlite3.h>

#include <unistd.h>

#include "base/file.h"
#include "tests/service/support/service_fixture.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

static const char resnet[] = MDOT_JOBS "/resnet50.onnx";

/* The layouts are those of `mdot plan`, byte for byte but for the two judgements that follow them. */
static void layouts_are_those_of_the_command(void **state)
{
    service_fixture *f = *state;
    static process_result result;
    char body[512];
    process_run((const char *const[]){MDOT_CLI, "plan", resnet, "--gpu=A100,T4", "--gpus=1,4", "--samples=1000000",
                                      "--precision=amp", "--json", "--quiet", NULL},
                &result);
    assert_int_equal(result.status, 0);
    snprintf(
        body, sizeof body,
        "{\"job\": \"%s\", \"gpus\": [\"A100\", \"T4\"], \"sizes\": [1, 4], \"options\": {\"precision\": \"amp\"}, "
        "\"training\": {\"samples\": 1000000}}",
        f->resnet);
    const char *text = service_ask(f, "POST", "/v1/plan", body, 200);
    assert_true(json_is_valid(text));
    const char *theirs = strstr(result.out, "{\"gpu\"");
    for (int i = 0; i < 4; i++) { /* the command sorts by time */
        assert_non_null(theirs);
        char *row = strndup(theirs, (size_t)(strstr(theirs, ", \"is_front\"") - theirs));
        const char *ours = strstr(text, row);
        if (ours == NULL) fail_msg("%s\nis not in\n%s", row, text);
        assert_int_equal(ours[strlen(row)], '}');
        free(row);
        theirs = strstr(theirs + 1, "{\"gpu\"");
    }
    assert_null(theirs);
}

static void arrays_of_a_plan_are_values_to_try(void **state)
{
    service_fixture *f = *state;
    char body[512];
    double zero[8];
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"gpus\": [\"A100\"], \"sizes\": [4], \"kept\": 8, \"options\": {\"zero_stage\": [2], "
             "\"batch\": [8, 16], \"recompute\": \"nothing\"}, \"prices\": {\"A100\": 2}}",
             f->resnet);
    const char *text = service_ask(f, "POST", "/v1/plan", body, 200);
    size_t count = json_numbers(text, "zero_stage", zero, 8);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) assert_int_equal((int)zero[i], 2);
    expect_contains(text, "\"cost\": ");
    static const char *const faults[] = {
        "{\"job\": \"%s\"}",
        "{\"job\": \"%s\", \"gpus\": []}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"sizes\": [0]}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"options\": {\"nothing\": 1}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"options\": {\"nothing\": [1]}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"options\": {\"precision\": [\"none\"]}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"training\": {\"samples\": -1}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"prices\": {\"T4\": 0}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"prices\": {\"T5000\": 1}}",
        "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"kept\": 100000}"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        snprintf(body, sizeof body, faults[i], f->resnet); /* NOLINT: constant formats */
        service_ask(f, "POST", "/v1/plan", body, 422);
        assert_true(json_is_valid(f->text));
    }
}

/* A search ends in time, and says so. */
static void a_search_ends_in_time(void **state)
{
    service_fixture *f = *state;
    char body[512];
    f->state.plan_seconds = 0;
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"gpus\": [\"A100\", \"H100\", \"T4\"], \"sizes\": [512, 1024, 2048]}", f->bert);
    service_ask(f, "POST", "/v1/plan", body, 200);
    f->state.plan_seconds = 600;
    expect_contains(f->text, "\"cancelled\": true");
}

/* Steps are in the store when the answer comes, once for each uid, and mdot-store calibrates from them. */
static void steps_are_kept_once(void **state)
{
    service_fixture *f = *state;
    static process_result result;
    char body[1024];
    for (int again = 0; again < 2; again++) {
        snprintf(
            body, sizeof body,
            "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"A100\", \"batch\": 64, \"precision\": \"amp\", \"gpus\": 4, "
            "\"data_parallel\": 4, \"torch\": \"2.4\", \"compiled\": true, \"step_ms\": 150.5, \"host\": \"node1\", "
            "\"uid\": \"00000000000000ab\"}, {\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 8, \"step_ms\": 90, "
            "\"uid\": \"00000000000000ac\", \"name\": \"bert\"}]}",
            f->resnet, f->bert);
        service_ask(f, "POST", "/v1/observations", body, 200);
        expect_contains(f->text,
                        again ? "\"steps\": {\"added\": 0, \"known\": 2}" : "\"steps\": {\"added\": 2, \"known\": 0}");
    }
    process_run((const char *const[]){MDOT_STORE, "export", f->store, NULL}, &result);
    assert_int_equal(result.status, 0);
    expect_contains(result.out, "150.5");
    expect_contains(result.out, "dp=4");
    expect_contains(result.out, "node1");
    char *calibration = process_in_folder(f->folder, "site.cal"), path[4096];
    snprintf(path, sizeof path, "%.*s:%s", (int)(strrchr(MDOT_CLI, '/') - MDOT_CLI), MDOT_CLI, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("MDOT_PREDICTOR", MDOT_SHIPPED_PREDICTOR, 1);
    process_run((const char *const[]){MDOT_STORE, "calibrate", f->store, "-o", calibration, NULL}, &result);
    if (result.status != 0) fail_msg("%s%s", result.out, result.err);
    free(calibration);
}

static void faulty_steps_name_their_place(void **state)
{
    service_fixture *f = *state;
    static const struct {
        const char *step, *part;
        int status;
    } cases[] = {
        {"1", "must be an object", 422},
        {"{}", "needs job, gpu, batch and step_ms", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": -1}", "step_ms", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1e99}", "step_ms", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T9\", \"batch\": 1, \"step_ms\": 1}", "T9", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1, \"uid\": \"zz\"}", "uid", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1, \"path\": \"/etc\"}", "path", 422},
        {"{\"job\": \"JOB\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1, \"precision\": [\"amp\"]}", "precision",
         422},
        {"{\"job\": \"0123\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1}", "POST /v1/jobs", 404},
        {"{\"job\": \"00000000000000000000000000000000\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1}", "digest",
         404},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[512];
        const char *mark = strstr(cases[i].step, "JOB");
        int before = mark != NULL ? (int)(mark - cases[i].step) : 0;
        snprintf(body, sizeof body, "{\"steps\": [%.*s%s%s]}", before, cases[i].step, mark != NULL ? f->resnet : "",
                 mark != NULL ? mark + 3 : cases[i].step);
        expect_contains(service_ask(f, "POST", "/v1/observations", body, cases[i].status), cases[i].part);
    }
    service_ask(f, "POST", "/v1/observations", "{}", 422);
    service_ask(f, "POST", "/v1/observations", "{\"steps\": 3}", 422);
}

/* Durations follow the outcomes: those that were sent, and after a restart those of the store. */
static void durations_follow_outcomes(void **state)
{
    service_fixture *f = *state;
    char *body = malloc(1 << 16);
    int used = sprintf(body, "{\"outcomes\": [");
    for (int i = 0; i < 60; i++)
        used +=
            sprintf(body + used,
                    "%s{\"cluster\": \"c\", \"job_id\": \"%d\", \"submitted_at\": %d, \"ended_at\": %d, \"elapsed_s\": "
                    "7200, \"user\": \"anna\", \"name\": \"train-%d\", \"outcome\": \"completed\", \"gpu_count\": 2}",
                    i > 0 ? ", " : "", i, 1763000000 + 10000 * i, 1763007200 + 10000 * i, i);
    sprintf(body + used, "]}");
    service_ask(f, "POST", "/v1/observations", body, 200);
    expect_contains(f->text, "\"outcomes\": {\"added\": 60, \"updated\": 0, \"known\": 0}");
    static const char question[] = "{\"jobs\": [{\"user\": \"anna\", \"name\": \"train-99\", \"gpus\": 2}, {}], "
                                   "\"quantiles\": [0.5, 0.9]}";
    for (int restart = 0; restart < 2; restart++) {
        double median[2], quantiles[8];
        service_ask(f, "POST", "/v1/durations", question, 200);
        assert_int_equal(json_numbers(f->text, "median_s", median, 2), 2);
        assert_true(median[0] > 6000 && median[0] < 8000);
        assert_int_equal(json_numbers(f->text, "seconds", quantiles, 8), 4);
        assert_true(quantiles[0] <= quantiles[1]);
        assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    }
    static const char *const faults[] = {"{}",
                                         "{\"jobs\": []}",
                                         "{\"jobs\": [1]}",
                                         "{\"jobs\": [{\"gpus\": -1}]}",
                                         "{\"jobs\": [{}], \"quantiles\": [2]}",
                                         "{\"jobs\": [{\"path\": \"x\"}]}"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) service_ask(f, "POST", "/v1/durations", faults[i], 422);
    free(body);
}

/* A store that is locked, damaged, full or absent refuses observations with 503; predictions go on. */
static void a_broken_store_costs_only_observations(void **state)
{
    service_fixture *f = *state;
    char step[512], question[256];
    snprintf(step, sizeof step, "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 1, \"step_ms\": 1}]}",
             f->resnet);
    snprintf(question, sizeof question, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"T4\"}}", f->resnet);
    char *broken = process_in_folder(f->folder, "broken.store");
    assert_int_equal(bs_write_file(broken, "this is no store, but a text of some length", 43, NULL), MDOT_OK);
    const char *const paths[] = {broken, "/dev/full/x", "/proc/none/x", NULL};
    for (size_t i = 0; i < 4; i++) {
        mdot_store_close(f->state.store);
        f->state.store = NULL;
        f->state.store_path = paths[i];
        expect_contains(service_ask(f, "POST", "/v1/observations", step, 503), "\"status\": 503");
        service_ask(f, "POST", "/v1/predict", question, 200);
        assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK); /* a reload does not need the store */
    }
    f->state.store_path = f->store;
    service_ask(f, "POST", "/v1/observations", step, 200); /* it is open again */
    free(broken);
}

/* While another program holds the store's lock, observations are refused in a few seconds, and the rest goes on. */
static void a_locked_store_costs_only_observations(void **state)
{
    service_fixture *f = *state;
    char step[512], question[256];
    sqlite3 *other = NULL;
    snprintf(step, sizeof step, "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 3, \"step_ms\": 3}]}",
             f->resnet);
    snprintf(question, sizeof question, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"T4\"}}", f->resnet);
    service_ask(f, "POST", "/v1/observations", step, 200);
    assert_int_equal(sqlite3_open(f->store, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        expect_contains(service_ask(f, "POST", "/v1/observations", step, 503), "another process holds the store");
        service_ask(f, "POST", "/v1/predict", question, 200);
        service_ask(f, "POST", "/v1/durations", "{\"jobs\": [{}]}", 200);
        assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    }
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    expect_contains(service_ask(f, "POST", "/v1/observations", step, 200), "\"steps\": {\"added\": 1, \"known\": 0}");
}

static void the_clock_may_jump(void **state)
{
    service_fixture *f = *state;
    static const int64_t times[] = {0, -1, 1764000000, INT64_MAX, INT64_MIN, 4102444800};
    char body[512];
    snprintf(body, sizeof body, "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 2, \"step_ms\": 5}]}",
             f->resnet);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const char *const bodies[] = {body, "{\"jobs\": [{\"user\": \"anna\"}]}"};
        for (int k = 0; k < 2; k++) {
            const sv_request request = {.method = "POST",
                                        .path = k == 0 ? "/v1/observations" : "/v1/durations",
                                        .query = "",
                                        .body = bodies[k],
                                        .body_bytes = strlen(bodies[k]),
                                        .now_s = times[i]};
            sv_answer answer;
            sv_handle(&f->state, &request, &answer);
            assert_true(answer.status == 200 || (k == 1 && answer.status == 422));
            sv_answer_free(&answer);
        }
    }
}

static void gpus_are_those_of_the_command_and_the_site(void **state)
{
    service_fixture *f = *state;
    static process_result result;
    process_run((const char *const[]){MDOT_CLI, "gpus", "--json", NULL}, &result);
    double expected[128], answered[128];
    const char *text = service_ask(f, "GET", "/v1/gpus", "", 200);
    assert_true(json_is_valid(text));
    static const char *const numbers[] = {"memory_gib", "fp16_tflops", "fp8_tflops", "watts"};
    for (size_t i = 0; i < 4; i++) {
        size_t count = json_numbers(result.out, numbers[i], expected, 128);
        assert_int_equal(json_numbers(text, numbers[i], answered, 128), count);
        assert_memory_equal(expected, answered, count * sizeof *expected);
    }
    char *site = process_in_folder(f->folder, "gpus.json"), body[256];
    static const char table[] = "{\"gpus\": [{\"name\": \"A100-slow\", \"like\": \"A100\", \"fp16_tflops\": 100}]}";
    assert_int_equal(bs_write_file(site, table, strlen(table), NULL), MDOT_OK);
    f->state.sources.gpus = site;
    assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    expect_contains(service_ask(f, "GET", "/v1/gpus", "", 200), "{\"name\": \"A100-slow\"");
    double slow, fast;
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"A100-slow\", \"batch\": 64, \"precision\": \"amp\"}}",
             f->bert);
    assert_int_equal(json_numbers(service_ask(f, "POST", "/v1/predict", body, 200), "step_ms", &slow, 1), 1);
    memcpy(strstr(body, "A100-slow\""), "A100\"     ", 10);
    assert_int_equal(json_numbers(service_ask(f, "POST", "/v1/predict", body, 200), "step_ms", &fast, 1), 1);
    assert_true(slow > 1.2 * fast);
    assert_int_equal(bs_write_file(site, "{\"gpus\": [{}]}", 14, NULL), MDOT_OK);
    mdot_error err = {0};
    assert_int_not_equal(sv_state_reload(&f->state, &err), MDOT_OK);
    expect_contains(err.message, "gpus.json");
    expect_contains(service_ask(f, "GET", "/v1/gpus", "", 200), "A100-slow"); /* everything stays as it was */
    f->state.sources.gpus = NULL;
    assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    free(site);
}

static void metrics_count_requests(void **state)
{
    service_fixture *f = *state;
    service_ask(f, "GET", "/healthz", "", 200);
    service_ask(f, "GET", "/readyz", "", 200);
    atomic_store(&f->state.is_draining, true);
    service_ask(f, "GET", "/readyz", "", 503);
    atomic_store(&f->state.is_draining, false);
    service_ask(f, "GET", "/v1/predict", "", 405);
    service_ask(f, "POST", "/v1/gpus", "", 405);
    service_ask(f, "GET", "/../etc/passwd", "", 404);
    const char *text = service_ask(f, "GET", "/metrics", "", 200);
    assert_string_equal(f->answer.type, "text/plain; version=0.0.4");
    expect_contains(text, "\nmdotd_requests_total{endpoint=\"healthz\",status=\"2xx\"} 1\n");
    expect_contains(text, "\nmdotd_requests_total{endpoint=\"readyz\",status=\"5xx\"} 1\n");
    expect_contains(text, "\nmdotd_requests_total{endpoint=\"other\",status=\"4xx\"} 3\n");
    expect_contains(text, "\nmdotd_inside_seconds_bucket{endpoint=\"healthz\",le=\"+Inf\"} 1\n");
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) { /* the text format of Prometheus */
        if (*line == '#') continue;
        const char *end = strchr(line, '\n'), *blank = line + strcspn(line, " \n");
        if (memchr(line, '{', (size_t)(end - line)) != NULL) blank = strchr(strchr(line, '}'), ' ');
        assert_memory_equal(line, "mdotd_", 6);
        char *rest;
        strtod(blank, &rest);
        assert_ptr_equal(rest, end);
    }
}

/* Right requests, each with a repeated member, with a NUL in a text or a name, and with a query. Nothing that a client
 * sends is left out silently. */
static void no_part_of_a_request_is_left_out(void **state)
{
    service_fixture *f = *state;
    static const char *const paths[] = {"/v1/predict", "/v1/plan", "/v1/observations", "/v1/durations"};
    char bodies[4][600];
    snprintf(bodies[0], sizeof *bodies, "{\"job\": \"%s\", \"configuration\": {\"gpu\": [\"A100\"], \"batch\": 8}}",
             f->resnet);
    snprintf(bodies[1], sizeof *bodies,
             "{\"job\": \"%s\", \"gpus\": [\"A100\"], \"sizes\": [1], \"options\": {\"batch\": 64}}", f->resnet);
    snprintf(
        bodies[2], sizeof *bodies,
        "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"A100\", \"batch\": 8, \"step_ms\": 5, \"note\": \"a: \\\"b\\\"\"}]}",
        f->resnet);
    snprintf(bodies[3], sizeof *bodies, "{\"jobs\": [{\"user\": \"a\", \"name\": \"\\\\u0000 {,:\"}]}");
    for (size_t i = 0; i < 4; i++) {
        char changed[1400];
        int cases = 0;
        service_ask(f, "POST", paths[i], bodies[i], 200);
        expect_contains(service_ask_bytes(f, paths[i], "gpu=A100", bodies[i], strlen(bodies[i]), 422), "no query");
        for (const char *at = bodies[i]; *at != '\0'; at++) {
            if (*at == '{' && at[1] == '"') { /* the object's first member once more, with another value */
                int name = (int)strcspn(at + 2, "\"") + 2;
                snprintf(changed, sizeof changed, "%.*s%.*s: null, %s", (int)(at + 1 - bodies[i]), bodies[i], name,
                         at + 1, at + 1);
                expect_contains(service_ask(f, "POST", paths[i], changed, 400), "a member twice");
                cases++;
            }
            if (*at == '"' && at[-1] != '\\') { /* each text, name and end of one */
                snprintf(changed, sizeof changed, "%.*s\\u0000%s", (int)(at + 1 - bodies[i]), bodies[i], at + 1);
                service_ask(f, "POST", paths[i], changed, 400);
                cases++;
            }
        }
        assert_true(cases > 6);
    }
}

/* Whatever is in a body, each endpoint answers with valid JSON and no fault of the service. */
static void any_bytes_get_an_answer(void **state)
{
    service_fixture *f = *state;
    static const struct {
        const char *path, *body;
    } seeds[] = {
        {"/v1/predict", "{\"job\": \"%s\", \"configuration\": {\"gpu\": [\"T4\", {\"name\": \"x\", \"like\": \"T4\"}], "
                        "\"batch\": [1, 2], \"precision\": \"amp\", \"torch\": \"2.4\", \"link\": 25}}"},
        {"/v1/plan",
         "{\"job\": \"%s\", \"gpus\": [\"T4\"], \"sizes\": [1, 2], \"kept\": 2, \"options\": {\"batch\": [8], "
         "\"zero_stage\": 1}, \"training\": {\"samples\": 1000}, \"prices\": {\"T4\": 1}}"},
        {"/v1/observations",
         "{\"steps\": [{\"job\": \"%s\", \"gpu\": \"T4\", \"batch\": 8, \"step_ms\": 90.5, \"uid\": "
         "\"00000000000000ff\", \"precision\": \"bf16\"}], \"outcomes\": [{\"job_id\": \"7\", "
         "\"submitted_at\": 1764000000, \"outcome\": \"failed\"}]}"},
        {"/v1/durations", "{\"jobs\": [{\"user\": \"anna\", \"name\": \"%s\", \"gpus\": 2, \"executed_s\": 5}], "
                          "\"quantiles\": [0.5, 0.9]}"},
    };
    static const char *const words[] = {"[",     "]",   "{",          "}",       "\"",   ",",
                                        ":",     "-1",  "1e999",      "null",    "true", "1e9",
                                        "0.001", "gpu", "batch",      "\\u0000", "\xff", "18446744073709551616",
                                        "steps", "nan", "[[[[[[[[[[", "job"};
    uint64_t random = 4711;
    for (int i = 0; i < 2000; i++) {
        char body[2048];
        const char *path = seeds[i % 4].path;
        size_t size = (size_t)snprintf(body, sizeof body, seeds[i % 4].body, f->resnet); /* NOLINT: constant formats */
        for (int k = 0; k < 1 + i % 5; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t offset = random % size, word = random / size % (sizeof words / sizeof *words),
                   length = strlen(words[word]);
            if (random >> 60 < 6) { /* replaces bytes, inserts a word, or cuts */
                body[offset] = (char)(random >> 32);
            } else if (random >> 60 < 14 && size + length < sizeof body) {
                memmove(body + offset + length, body + offset, size - offset);
                memcpy(body + offset, words[word], length);
                size += length;
            } else if (offset > 0) {
                size = offset;
            }
        }
        const sv_request request = {.method = "POST", .path = path, .query = "", .body = body, .body_bytes = size};
        sv_answer answer;
        sv_handle(&f->state, &request, &answer);
        if (answer.status != 200 && (answer.status < 400 || answer.status >= 500))
            fail_msg("%s: %d for %.*s", path, answer.status, (int)size, body);
        char *text = strndup(answer.body, answer.body_bytes);
        assert_true(json_is_valid(text));
        free(text);
        sv_answer_free(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_count_requests),
        cmocka_unit_test(layouts_are_those_of_the_command),
        cmocka_unit_test(arrays_of_a_plan_are_values_to_try),
        cmocka_unit_test(a_search_ends_in_time),
        cmocka_unit_test(steps_are_kept_once),
        cmocka_unit_test(faulty_steps_name_their_place),
        cmocka_unit_test(durations_follow_outcomes),
        cmocka_unit_test(a_broken_store_costs_only_observations),
        cmocka_unit_test(a_locked_store_costs_only_observations),
        cmocka_unit_test(the_clock_may_jump),
        cmocka_unit_test(gpus_are_those_of_the_command_and_the_site),
        cmocka_unit_test(no_part_of_a_request_is_left_out),
        cmocka_unit_test(any_bytes_get_an_answer),
    };
    return cmocka_run_group_tests_name("answers", tests, service_set_up, service_tear_down);
}
