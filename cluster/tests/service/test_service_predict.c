/* test_service_predict.c — POST /v1/predict: the numbers of `mdot predict --json`, byte for byte; combinations;
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/training/training_options.h"
#include "service/configurations.h"
#include "tests/service/support/service_fixture.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

static const char *const paths[] = {MDOT_JOBS "/resnet50.onnx", MDOT_JOBS "/bert_base.onnx"};

/* A random configuration, as a JSON object and as a command line. */
typedef struct drawn {
    char json[1024], words[32][64];
    const char *argv[48];
    size_t count;
} drawn;

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return *random;
}

static void add_word(drawn *d, const char *format, const char *name, const char *value)
{
    snprintf(d->words[d->count], sizeof d->words[0], format, name, value);
    d->argv[d->count] = d->words[d->count];
    d->count++;
}

/* Draws options of the table, so that a new row is drawn, too. */
static void draw(drawn *d, uint64_t *random)
{
    static const char *const gpus[] = {"A100", "H100", "T4", "V100", "L40S"};
    size_t used = 0;
    *d = (drawn){.count = 0};
    const char *gpu = gpus[next(random) % 5];
    char batch[24];
    snprintf(batch, sizeof batch, "%d", 1 << next(random) % 9);
    used = (size_t)snprintf(d->json, sizeof d->json, "{\"gpu\": \"%s\", \"batch\": %s", gpu, batch);
    add_word(d, "--%s=%s", "gpu", gpu);
    add_word(d, "--%s=%s", "batch", batch);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        bool is_drawn = next(random) % 12 == 0 &&
                        (o->section == RT_SECTION_TRAINING || o->section == RT_SECTION_CLUSTER) &&
                        i != RT_OPTION_node_count;
        char value[32];
        if (!is_drawn) continue;
        int length = (int)strcspn(o->json, "?");
        if (o->kind == RT_KIND_CHOICE) {
            size_t count = 0;
            while (o->choices[count] != NULL) count++;
            snprintf(value, sizeof value, "%s", o->choices[next(random) % count]);
        } else if (o->kind == RT_KIND_FLAG) {
            used += (size_t)snprintf(d->json + used, sizeof d->json - used, ", \"%.*s\": true", length, o->json);
            add_word(d, "--%s%s", o->command, "");
            continue;
        } else if (o->kind == RT_KIND_VERSION) {
            snprintf(value, sizeof value, "2.%d", (int)(next(random) % 9));
        } else {
            snprintf(value, sizeof value, "%d", 1 << next(random) % 4);
        }
        bool is_text = o->kind == RT_KIND_CHOICE || o->kind == RT_KIND_VERSION;
        used += (size_t)snprintf(d->json + used, sizeof d->json - used,
                                 is_text ? ", \"%.*s\": \"%s\"" : ", \"%.*s\": %s", length, o->json, value);
        add_word(d, "--%s=%s", o->command, value);
    }
    snprintf(d->json + used, sizeof d->json - used, "}");
}

/* The objects of the member "predictions". */
static const char *predictions_of(const char *text)
{
    const char *found = strstr(text, "\"predictions\": [");
    if (found == NULL) fail_msg("no predictions: %.500s", text);
    return found;
}

static void predict_by_command(const drawn *d, bool is_bert, const char *calibration, process_result *out)
{
    const char *argv[64] = {MDOT_CLI, "predict", paths[is_bert], "--json", "--quiet"};
    size_t count = 5;
    if (is_bert) argv[count++] = "--dim=sequence=128";
    if (calibration != NULL) argv[count++] = calibration;
    for (size_t i = 0; i < d->count; i++) argv[count++] = d->argv[i];
    process_run(argv, out);
}

static size_t compare_random(service_fixture *f, int rounds, uint64_t seed, const char *calibration)
{
    static process_result result;
    size_t answered = 0;
    for (int i = 0; i < rounds; i++) {
        drawn d;
        char body[2048];
        bool is_bert = next(&seed) % 2 == 0;
        draw(&d, &seed);
        predict_by_command(&d, is_bert, calibration, &result);
        snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": %s}", is_bert ? f->bert : f->resnet, d.json);
        if (result.status != 0) { /* refused by both, for the same reason */
            service_ask(f, "POST", "/v1/predict", body, 422);
            assert_null(strstr(f->text, "\"predictions\""));
            continue;
        }
        answered++;
        assert_string_equal(predictions_of(service_ask(f, "POST", "/v1/predict", body, 200)),
                            predictions_of(result.out));
    }
    return answered;
}

static void answers_are_those_of_the_command(void **state)
{
    assert_true(compare_random(*state, 60, 20261128, NULL) > 20);
}

/* A plan names the same predictor, calibration and version as a prediction, and its layouts have the same times. */
static void expect_plan_of(service_fixture *f)
{
    char body[256], head[1024], time[64];
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"A100\", \"batch\": 64, \"optimizer\": \"adamw\"}}",
             f->resnet);
    const char *text = strchr(service_ask(f, "POST", "/v1/predict", body, 200), ',');
    snprintf(head, sizeof head, "%.*s", (int)(strstr(text, ", \"operators\"") - text), text);
    text = strstr(text, "\"step_ms\": ");
    snprintf(time, sizeof time, "%.*s", (int)(strchr(text, ',') - text), text);
    snprintf(body, sizeof body, "{\"job\": \"%s\", \"gpus\": [\"A100\"], \"sizes\": [1], \"global_batch\": 64}",
             f->resnet);
    text = strchr(service_ask(f, "POST", "/v1/plan", body, 200), ',');
    assert_memory_equal(text, head, strlen(head));
    assert_non_null(strstr(text, time));
}

/* The calibration's effect, and its name in the answer. */
static void calibrated_answers_are_those_of_the_command(void **state)
{
    service_fixture *f = *state;
    static process_result result;
    char *table = process_in_folder(f->folder, "steps.csv"), *calibration = process_in_folder(f->folder, "site.cal");
    char option[4200];
    FILE *file = fopen(table, "w");
    assert_non_null(file);
    fprintf(file, "job,gpu,batch,dim,ms\n%s,A100,32,,50\n%s,T4,16,sequence=128,300\n", paths[0], paths[1]);
    fclose(file);
    process_run((const char *const[]){MDOT_CLI, "calibrate", table, "-o", calibration, NULL}, &result);
    assert_int_equal(result.status, 0);
    f->state.sources.calibration = calibration;
    assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    snprintf(option, sizeof option, "--calibration=%s", calibration);
    assert_true(compare_random(f, 20, 7, option) > 5);
    char body[256];
    snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"A100\"}}", f->resnet);
    expect_contains(service_ask(f, "POST", "/v1/predict", body, 200), "\"calibrated_by\": 2, \"calibration\": \"");
    expect_plan_of(f);
    f->state.sources.calibration = NULL;
    assert_int_equal(sv_state_reload(&f->state, NULL), MDOT_OK);
    free(table);
    free(calibration);
}

/* Arrays give all combinations, the last one fastest; each answer is that of the question alone. */
static void arrays_are_combinations(void **state)
{
    service_fixture *f = *state;
    static const char *const gpus[] = {"T4", "A100"}, *const precisions[] = {"fp32", "amp-fp16", "bf16"};
    char body[512], *whole, *cursor;
    snprintf(
        body, sizeof body,
        "{\"job\": \"%s\", \"configuration\": {\"gpu\": [\"T4\", \"A100\"], \"batch\": 8, \"precision\": [\"fp32\", "
        "\"amp-fp16\", \"bf16\"]}}",
        f->bert);
    whole = strdup(service_ask(f, "POST", "/v1/predict", body, 200));
    cursor = strstr(whole, "\"predictions\": [");
    for (int i = 0; i < 6; i++) {
        snprintf(body, sizeof body,
                 "{\"job\": \"%s\", \"configurations\": [{\"gpu\": \"%s\", \"batch\": 8, \"precision\": \"%s\"}]}",
                 f->bert, gpus[i / 3], precisions[i % 3]);
        char *one = strstr(service_ask(f, "POST", "/v1/predict", body, 200), "{\"gpu\"");
        assert_non_null(one);
        *strrchr(one, ']') = '\0';
        while (one[strlen(one) - 1] <= ' ') one[strlen(one) - 1] = '\0';
        cursor = strstr(cursor, one);
        assert_non_null(cursor);
    }
    free(whole);
}

/* A refused configuration has its reason at its place, and the others their answers. */
static void refusals_stand_at_their_places(void **state)
{
    service_fixture *f = *state;
    char body[512];
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"configurations\": [{\"gpu\": \"T4\", \"precision\": \"fp8\"}, {\"gpu\": \"T4\"}, "
             "{\"gpu\": \"T4\", \"mode\": \"inference\", \"gpus\": 8}]}",
             f->resnet);
    const char *text = service_ask(f, "POST", "/v1/predict", body, 200);
    assert_true(json_is_valid(text));
    const char *first = strstr(text, "{\"error\": {\"code\": \"MDOT_INVALID_ARGUMENT\", \"detail\": \"");
    assert_non_null(first);
    const char *answer = strstr(first, "\"step_ms\"");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "{\"error\": "));
    assert_null(strstr(strstr(answer, "{\"error\": "), "\"step_ms\""));
}

/* Twenty thousand configurations in one request are answered by several threads, in order. */
static void many_configurations_keep_their_order(void **state)
{
    service_fixture *f = *state;
    enum { BATCHES = 2000 };
    char *body = malloc(1 << 16);
    assert_non_null(body);
    int used = sprintf(body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"A100\", \"batch\": [", f->resnet);
    for (int i = 0; i < BATCHES; i++) used += sprintf(body + used, "%s%d", i > 0 ? "," : "", 1 + i * 7919 % BATCHES);
    strcpy(body + used, "]}}");
    static double batches[BATCHES], ms[BATCHES];
    const char *text = service_ask(f, "POST", "/v1/predict", body, 200);
    assert_int_equal(json_numbers(text, "batch", batches, BATCHES), BATCHES);
    assert_int_equal(json_numbers(text, "step_ms", ms, BATCHES), BATCHES);
    for (int i = 0; i < BATCHES; i++) {
        assert_int_equal((int)batches[i], 1 + i * 7919 % BATCHES);
        for (int k = i > 0 ? i - 1 : 0; k < i; k++) assert_true((ms[i] >= ms[k]) == (batches[i] >= batches[k]));
    }
    free(body);
}

static void faults_name_member_and_remedy(void **state)
{
    service_fixture *f = *state;
    static const struct {
        const char *body, *part;
        int status;
    } cases[] = {
        {"", "the body is empty", 400},
        {"{", "ends early", 400},
        {"[]", "one JSON object", 400},
        {"{} {}", "no JSON", 400},
        {"{\"a\":[[[[[[[[[[1]]]]]]]]]]}", "nested deeper", 400},
        {"{\"job\": 1, \"configuration\": {}}", "job must be a string", 422},
        {"{\"configuration\": {}}", "job is missing", 422},
        {"{\"jop\": \"x\", \"configuration\": {}}", "job", 422},
        {"{\"job\": \"x\"}", "either configuration or configurations", 422},
        {"{\"job\": \"x\", \"configuration\": {}}", "POST /v1/jobs", 404},
        {"{\"job\": \"JOB\", \"configuration\": {}}", "needs a gpu", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"A1000000\"}}", "A100", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": {\"name\": \"x\", \"like\": \"H100\", \"memory_gib\": -1}}}",
         "memory_gib", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"presision\": \"amp\"}}", "precision", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"precision\": \"half\"}}", "must be one of fp32",
         422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"batch\": 0}}", "batch must be an integer from 1",
         422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"batch\": 1.5}}", "batch must be an integer", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"batch\": 1e300}}", "batch must be an integer", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"compiled\": 1}}", "true or false", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": \"T4\", \"torch\": 2.4}}", "version as a string", 422},
        {"{\"job\": \"JOB\", \"configuration\": {\"gpu\": []}}", "empty array", 422},
        {"{\"job\": \"JOB\", \"configurations\": []}", "empty array", 422},
        {"{\"job\": \"JOB\", \"configurations\": [1]}", "must be an object", 422},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[512];
        const char *mark = strstr(cases[i].body, "JOB");
        if (mark != NULL)
            snprintf(body, sizeof body, "%.*s%s%s", (int)(mark - cases[i].body), cases[i].body, f->resnet, mark + 3);
        else
            snprintf(body, sizeof body, "%s", cases[i].body);
        const char *text = service_ask(f, "POST", "/v1/predict", body, cases[i].status);
        assert_true(json_is_valid(text));
        expect_contains(text, cases[i].part);
    }
}

/* A body that begins like an object is read, or refused for a limit, exactly if it is JSON (RFC 8259). */
static void bodies_are_read_if_they_are_json(void **state)
{
    (void)state;
    static const char *const seeds[] = {"{\"a\":[1.5,-0.25e+3,0,true],\"b\":{\"c\":\"x\\u00e9\\n\"},\"d\":null}",
                                        "{ \"a\" : 10, \"b\":1e-05 }", "{\"a\":-10,\"b\":\"'\"}",
                                        "{\"a\":[],\"b\":[{}],\"c\":1E5}"};
    static const char *const parts[] = {
        "NaN",  "Infinity", "-Infinity", "nan", "0",  "1",    "9",    ".",    "-", "+",      "e",       "E",  "\"",
        "'",    ",",        ":",         "[",   "]",  "{",    "}",    "\\",   "u", "\x01",   "\n",      "\f", "\x1f",
        "\x7f", "/",        "/**/",      " ",   "\t", "true", "True", "null", "a", "\"q\":", "\\u0000", ""};
    static const char *const limits[] = {"twice", "NUL", "deeper"};
    int valid = 0, invalid = 0;
    uint64_t random = 52;
    for (int round = 0; round < 60000; round++) {
        char text[512];
        snprintf(text, sizeof text, "%s", seeds[round % 4]);
        for (int change = 0; change <= round % 3; change++) { /* a part replaces none or one byte behind the first */
            random = random * 6364136223846793005 + 1442695040888963407;
            size_t length = strlen(text), at = 1 + (size_t)(random >> 40) % length,
                   cut = at < length && (random >> 39 & 1);
            const char *part = parts[(random >> 33) % (sizeof parts / sizeof *parts)];
            memmove(text + at + strlen(part), text + at + cut, length - at - cut + 1);
            memcpy(text + at, part, strlen(part));
        }
        struct json_object *object = NULL;
        mdot_error err = {0};
        mdot_status status = sv_json_read(text, strlen(text), &object, &err);
        json_object_put(object);
        bool is_read = status == MDOT_OK;
        for (size_t i = 0; !is_read && i < 3; i++) is_read = strstr(err.message, limits[i]) != NULL;
        assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
        if (is_read != json_is_valid(text)) fail_msg("%s: %s", text, err.message);
        *(is_read ? &valid : &invalid) += 1;
    }
    assert_true(valid > 5000 && invalid > 5000);
}

/* Any number of values up to the limit is read, in any white space; deeper and longer bodies are refused unread. */
static void bodies_have_limits(void **state)
{
    (void)state;
    char *body = malloc(2 * SV_JSON_VALUES + 64);
    struct json_object *object = NULL;
    assert_non_null(body);
    for (int extra = 0; extra < 2; extra++) {
        size_t used = (size_t)sprintf(body, " {\"a\": [1");
        for (int i = 3; i < SV_JSON_VALUES + extra + 1; i++) used += (size_t)sprintf(body + used, ",1");
        used += (size_t)sprintf(body + used, "] } \n");
        assert_int_equal(sv_json_read(body, used, &object, NULL), extra ? MDOT_OUT_OF_RANGE : MDOT_OK);
    }
    json_object_put(object);
    for (int depth = 1; depth <= SV_JSON_DEPTH + 1; depth++) {
        size_t used = (size_t)sprintf(body, "{\"a\":");
        for (int i = 1; i < depth; i++) body[used++] = '[';
        for (int i = 1; i < depth; i++) body[used++] = ']';
        used += (size_t)sprintf(body + used, "%s}", depth == 1 ? "1" : "");
        object = NULL;
        assert_int_equal(sv_json_read(body, used, &object, NULL), depth <= SV_JSON_DEPTH ? MDOT_OK : MDOT_MALFORMED);
        json_object_put(object);
    }
    sv_configurations none = {0};
    sv_configurations_free(&none);
    free(body);
}

static void combinations_have_a_limit(void **state)
{
    service_fixture *f = *state;
    char body[2048];
    int used = snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": [", f->resnet);
    for (int i = 0; i < 30; i++)
        used += snprintf(body + used, sizeof body - (size_t)used, "%s\"T4\"", i > 0 ? "," : "");
    for (int k = 0; k < 3; k++) {
        static const char *const names[] = {"batch", "accumulate", "gpus"};
        used += snprintf(body + used, sizeof body - (size_t)used, "], \"%s\": [", names[k]);
        for (int i = 0; i < 30; i++)
            used += snprintf(body + used, sizeof body - (size_t)used, "%s%d", i > 0 ? "," : "", i + 1);
    }
    snprintf(body + used, sizeof body - (size_t)used, "]}}");
    expect_contains(service_ask(f, "POST", "/v1/predict", body, 413), "at most 20000 configurations");
}

/* A GPU of the request is answered as `mdot predict` answers the same numbers. */
static void a_gpu_may_be_described(void **state)
{
    service_fixture *f = *state;
    char body[512], *known;
    snprintf(body, sizeof body, "{\"job\": \"%s\", \"configuration\": {\"gpu\": \"L40S\"}}", f->bert);
    known = strdup(strstr(service_ask(f, "POST", "/v1/predict", body, 200), "\"batch\""));
    snprintf(body, sizeof body,
             "{\"job\": \"%s\", \"configuration\": {\"gpu\": {\"name\": \"L40S\", \"like\": \"L40S\"}}}", f->bert);
    assert_string_equal(strstr(service_ask(f, "POST", "/v1/predict", body, 200), "\"batch\""), known);
    free(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_the_command),
        cmocka_unit_test(calibrated_answers_are_those_of_the_command),
        cmocka_unit_test(arrays_are_combinations),
        cmocka_unit_test(refusals_stand_at_their_places),
        cmocka_unit_test(many_configurations_keep_their_order),
        cmocka_unit_test(faults_name_member_and_remedy),
        cmocka_unit_test(bodies_are_read_if_they_are_json),
        cmocka_unit_test(bodies_have_limits),
        cmocka_unit_test(combinations_have_a_limit),
        cmocka_unit_test(a_gpu_may_be_described),
    };
    return cmocka_run_group_tests_name("predict", tests, service_set_up, service_tear_down);
}
