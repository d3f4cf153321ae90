/* test_handle_validation_calls.c — MDOT_VALIDATE=1. Every public function with an object parameter refuses a destroyed
 * one of any kind. Every function on a context refuses one in use. The headers define the functions for each object
 * kind, and the export maps list all functions. A function with an object but without a row here fails the test. */
#include "runtime/core/core.h"
#include "tests/fault/destroyed_objects.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Objects: all are alive, except one destroyed object of each kind -------------------------------------------- */

typedef struct objects {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *job;
    mdot_encoding *encoding;
    mdot_job_inputs *inputs;
    mdot_explanation *explanation;
    mdot_calibration *calibration;
    mdot_recorder *recorder;
    mdot_plan *plan;
} objects;

static predict_fixture f;
static objects alive, destroyed;
static mdot_configuration configuration;

static mdot_gpu plan_gpu = MDOT_INIT(mdot_gpu);
static const uint32_t plan_size = 1;
static const mdot_plan_space plan_space = {.struct_size = sizeof plan_space,
                                           .base = &configuration,
                                           .gpus = &plan_gpu,
                                           .gpu_model_count = 1,
                                           .sizes = &plan_size,
                                           .size_count = 1};

static void make(objects *o)
{
    const mdot_job *jobs[1];
    const double ms = 30;
    mdot_error err = {0};
    mdot_job_operator op = predict_operator(0);
    op.module = "encoder";
    o->job = predict_make_job(&op, 1);
    jobs[0] = o->job;
    mdot_status status = mdot_context_create(f.predictor, &o->context, &err);
    if (status == MDOT_OK) status = mdot_encoding_create(f.context, o->job, &o->encoding, &err);
    if (status == MDOT_OK) status = mdot_job_inputs_create(f.context, 0, o->job, &configuration, &o->inputs, &err);
    if (status == MDOT_OK) status = mdot_explain(f.context, o->job, &configuration, &o->explanation, &err);
    if (status == MDOT_OK) status = mdot_calibrate(f.context, jobs, &configuration, &ms, 1, &o->calibration, &err);
    if (status == MDOT_OK) status = mdot_recorder_create(NULL, &o->recorder, &err);
    if (status == MDOT_OK) status = mdot_gpu_find("A100", &plan_gpu, &err);
    if (status == MDOT_OK) status = mdot_plan_create(&f.context, 1, o->job, &plan_space, &o->plan, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
}

static void destroy(const objects *o)
{
    mdot_plan_destroy(o->plan);
    mdot_recorder_destroy(o->recorder);
    mdot_calibration_destroy(o->calibration);
    mdot_explanation_destroy(o->explanation);
    mdot_job_inputs_destroy(o->inputs);
    mdot_encoding_destroy(o->encoding);
    mdot_context_destroy(o->context);
    mdot_job_destroy(o->job);
}

static int set_up(void **state)
{
    (void)state;
    predict_fixture closed;
    configuration = predict_configuration(32, "A100");
    predict_open(&f, predict_bandwidth_model());
    predict_open(&closed, predict_bandwidth_model());
    make(&alive);
    make(&destroyed);
    alive.predictor = f.predictor;
    destroyed.predictor = closed.predictor;
    destroy(&destroyed);
    predict_close(&closed);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    destroy(&alive);
    predict_close(&f);
    return 0;
}

/* ---- Calls: all arguments except the object are valid ------------------------------------------------------------ */

static mdot_error err;
static size_t number;
static const void *const no_inputs[] = {NULL};
static void *const no_outputs[] = {NULL};
static const mdot_item item = {1, no_inputs, no_outputs};
static mdot_prediction prediction = MDOT_INIT(mdot_prediction);
static mdot_context *no_context;
static mdot_job *no_job;
static mdot_encoding *no_encoding;
static mdot_job_inputs *no_set;
static mdot_explanation *no_explanation;
static mdot_gpu_load no_load = MDOT_INIT(mdot_gpu_load);
static mdot_beside no_beside = MDOT_INIT(mdot_beside);
static mdot_calibration *no_calibration;
static mdot_plan *no_plan;
static const mdot_context_options context_options = MDOT_INIT(mdot_context_options);
static const mdot_job_freezing freezing = {
    .struct_size = sizeof freezing, .frozen = (const char *const[]){"encoder"}, .frozen_count = 1};
static const double one_ms = 1;
static const char *words;
static mdot_input input;

/* Kind, function, and the call with an object `o` of this kind. */
/* clang-format off */
#define NOTHING(call) ((call), MDOT_INVALID_ARGUMENT) /* for a function that returns void */
#define INTO(type) &(type){.struct_size = sizeof(type)}
#define JOBS (const mdot_job *const[]){o}
#define ROW_MAP(ROW) \
    ROW(predictor, mdot_predictor_close, NOTHING(mdot_predictor_close(o))) \
    ROW(predictor, mdot_predictor_get_info, mdot_predictor_get_info(o, INTO(mdot_predictor_info))) \
    ROW(predictor, mdot_predictor_find_entry, mdot_predictor_find_entry(o, "predict", &number)) \
    ROW(predictor, mdot_predictor_find_bucket, mdot_predictor_find_bucket(o, 0, 1, &number)) \
    ROW(predictor, mdot_predictor_get_entry, mdot_predictor_get_entry(o, 0, INTO(mdot_entry_info))) \
    ROW(predictor, mdot_predictor_get_input, mdot_predictor_get_input(o, 0, 0, INTO(mdot_tensor_info))) \
    ROW(predictor, mdot_predictor_get_output, mdot_predictor_get_output(o, 0, 0, INTO(mdot_tensor_info))) \
    ROW(predictor, mdot_predictor_get_bucket, mdot_predictor_get_bucket(o, 0, 0, INTO(mdot_bucket_info))) \
    ROW(predictor, mdot_predictor_get_kernel, mdot_predictor_get_kernel(o, 0, 0, 0, INTO(mdot_kernel_info))) \
    ROW(predictor, mdot_predictor_get_image, mdot_predictor_get_image(o, 0, INTO(mdot_image_info))) \
    ROW(predictor, mdot_predictor_get_image_kernel, \
        mdot_predictor_get_image_kernel(o, 0, 0, 0, INTO(mdot_image_kernel_info))) \
    ROW(predictor, mdot_context_create, mdot_context_create(o, &no_context, &err)) \
    ROW(predictor, mdot_context_create_with, mdot_context_create_with(o, &context_options, &no_context, &err)) \
    ROW(context, mdot_context_destroy, NOTHING(mdot_context_destroy(o))) \
    ROW(context, mdot_context_get_device_status, mdot_context_get_device_status(o, &words)) \
    ROW(context, mdot_run, mdot_run(o, 0, NULL, 0, NULL, 0, &err)) \
    ROW(context, mdot_run_ordered, mdot_run_ordered(o, 0, 1, no_inputs, no_outputs, &err)) \
    ROW(context, mdot_run_step, mdot_run_step(o, 0, 1, no_inputs, no_outputs, 0, &err)) \
    ROW(context, mdot_run_many, mdot_run_many(o, 0, &item, 0, &err)) \
    ROW(context, mdot_predict, mdot_predict(o, alive.job, &configuration, &prediction, &err)) \
    ROW(context, mdot_predict_many, mdot_predict_many(o, NULL, NULL, 0, NULL, &err)) \
    ROW(context, mdot_sweep, mdot_sweep(o, alive.job, NULL, 0, NULL, &err)) \
    ROW(context, mdot_evaluate, mdot_evaluate(o, alive.encoding, NULL, 0, NULL, &err)) \
    ROW(context, mdot_encoding_create, mdot_encoding_create(o, alive.job, &no_encoding, &err)) \
    ROW(context, mdot_job_inputs_create, mdot_job_inputs_create(o, 0, alive.job, &configuration, &no_set, &err)) \
    ROW(context, mdot_explain, mdot_explain(o, alive.job, &configuration, &no_explanation, &err)) \
    ROW(context, mdot_gpu_load_of, mdot_gpu_load_of(o, alive.job, &configuration, &no_load, &err)) \
    ROW(context, mdot_predict_beside, mdot_predict_beside(o, &no_load, &no_load, &no_beside, &err)) \
    ROW(context, mdot_calibrate, mdot_calibrate(o, NULL, NULL, NULL, 0, &no_calibration, &err)) \
    ROW(context, mdot_calibrate_measured, mdot_calibrate_measured(o, NULL, 0, &no_calibration, &err)) \
    ROW(context, mdot_plan_create, \
        mdot_plan_create((mdot_context *const[]){o}, 1, alive.job, &plan_space, &no_plan, &err)) \
    ROW(job, mdot_plan_create, mdot_plan_create(&f.context, 1, o, &plan_space, &no_plan, &err)) \
    ROW(plan, mdot_plan_destroy, NOTHING(mdot_plan_destroy(o))) \
    ROW(plan, mdot_plan_get_info, mdot_plan_get_info(o, INTO(mdot_plan_info))) \
    ROW(plan, mdot_plan_get_layout, mdot_plan_get_layout(o, 0, INTO(mdot_plan_layout))) \
    ROW(job, mdot_job_destroy, NOTHING(mdot_job_destroy(o))) \
    ROW(job, mdot_job_get_info, mdot_job_get_info(o, INTO(mdot_job_info))) \
    ROW(job, mdot_job_get_operator, mdot_job_get_operator(o, 0, INTO(mdot_job_operator))) \
    ROW(job, mdot_job_save, mdot_job_save(o, "/nowhere/x.job", &err)) \
    ROW(job, mdot_job_freeze, mdot_job_freeze(o, &freezing, &no_job, &err)) \
    ROW(job, mdot_job_with_program, mdot_job_with_program(o, INTO(mdot_job_program), &no_job, &err)) \
    ROW(job, mdot_job_with_length, mdot_job_with_length(o, 1, &no_job, &err)) \
    ROW(job, mdot_job_of_lengths, \
        mdot_job_of_lengths((const mdot_job *[]){o, o, o}, (const int64_t[]){1, 2, 3}, "n", &no_job, &err)) \
    ROW(job, mdot_job_get_program, mdot_job_get_program(o, INTO(mdot_job_program))) \
    ROW(job, mdot_predict, mdot_predict(f.context, o, &configuration, &prediction, &err)) \
    ROW(job, mdot_predict_many, mdot_predict_many(f.context, JOBS, &configuration, 1, &prediction, &err)) \
    ROW(job, mdot_sweep, mdot_sweep(f.context, o, &configuration, 1, &prediction, &err)) \
    ROW(job, mdot_encoding_create, mdot_encoding_create(f.context, o, &no_encoding, &err)) \
    ROW(job, mdot_job_inputs_create, mdot_job_inputs_create(f.context, 0, o, &configuration, &no_set, &err)) \
    ROW(job, mdot_explain, mdot_explain(f.context, o, &configuration, &no_explanation, &err)) \
    ROW(job, mdot_gpu_load_of, mdot_gpu_load_of(f.context, o, &configuration, &no_load, &err)) \
    ROW(job, mdot_calibrate, mdot_calibrate(f.context, JOBS, &configuration, &one_ms, 1, &no_calibration, &err)) \
    ROW(job, mdot_calibration_apply_to_job, \
        mdot_calibration_apply_to_job(alive.calibration, o, &configuration, &prediction, &err)) \
    ROW(encoding, mdot_encoding_destroy, NOTHING(mdot_encoding_destroy(o))) \
    ROW(encoding, mdot_evaluate, mdot_evaluate(f.context, o, &configuration, 1, &prediction, &err)) \
    ROW(job_inputs, mdot_job_inputs_destroy, NOTHING(mdot_job_inputs_destroy(o))) \
    ROW(job_inputs, mdot_job_inputs_get, mdot_job_inputs_get(o, 0, &input)) \
    ROW(explanation, mdot_explanation_destroy, NOTHING(mdot_explanation_destroy(o))) \
    ROW(explanation, mdot_explanation_get_info, mdot_explanation_get_info(o, INTO(mdot_explanation_info))) \
    ROW(explanation, mdot_explanation_get_operator, mdot_explanation_get_operator(o, 0, INTO(mdot_operator_time))) \
    ROW(explanation, mdot_calibration_explain, \
        mdot_calibration_explain(alive.calibration, &configuration, o, &prediction, INTO(mdot_calibration_factors), \
                                 &err)) \
    ROW(calibration, mdot_calibration_destroy, NOTHING(mdot_calibration_destroy(o))) \
    ROW(calibration, mdot_calibration_apply_to_job, \
        mdot_calibration_apply_to_job(o, alive.job, &configuration, &prediction, &err)) \
    ROW(calibration, mdot_calibration_explain, \
        mdot_calibration_explain(o, &configuration, NULL, &prediction, INTO(mdot_calibration_factors), &err)) \
    ROW(calibration, mdot_calibration_save, mdot_calibration_save(o, "/nowhere/x.calibration", &err)) \
    ROW(calibration, mdot_calibration_get_info, mdot_calibration_get_info(o, INTO(mdot_calibration_info))) \
    ROW(calibration, mdot_calibration_get_gpu, mdot_calibration_get_gpu(o, 0, INTO(mdot_calibration_gpu))) \
    ROW(recorder, mdot_recorder_destroy, NOTHING(mdot_recorder_destroy(o))) \
    ROW(recorder, mdot_recorder_step, NOTHING(mdot_recorder_step(o, 1))) \
    ROW(recorder, mdot_recorder_finish, mdot_recorder_finish(o, INTO(mdot_recorded), &err))
/* clang-format on */

#define DEFINE_ROW(kind, function, ...)                                                                                \
    static mdot_status function##_of_##kind(void *object)                                                              \
    {                                                                                                                  \
        mdot_##kind *o = object;                                                                                       \
        return __VA_ARGS__;                                                                                            \
    }
ROW_MAP(DEFINE_ROW)
#undef DEFINE_ROW

typedef struct row {
    const char *function, *kind;
    mdot_status (*call)(void *object);
} row;

static const row rows[] = {
#define LIST_ROW(kind, function, ...) {#function, "mdot_" #kind, function##_of_##kind},
    ROW_MAP(LIST_ROW)
#undef LIST_ROW
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void *object_of(const objects *from, const char *kind)
{
    const struct {
        const char *kind;
        void *object;
    } all[] = {
        {"mdot_predictor", from->predictor},
        {"mdot_context", from->context},
        {"mdot_job", from->job},
        {"mdot_encoding", from->encoding},
        {"mdot_job_inputs", from->inputs},
        {"mdot_explanation", from->explanation},
        {"mdot_calibration", from->calibration},
        {"mdot_recorder", from->recorder},
        {"mdot_plan", from->plan},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].kind, kind) == 0) return all[i].object;
    fail_msg("no object is a %s", kind);
    return NULL;
}

/* ---- Messages: a line on stderr, because only some functions return a message ------------------------------------ */

static mdot_status listen(const row *r, void *object, char *out_words, size_t capacity)
{
    int here = dup(STDERR_FILENO), ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_compare(here, >=, 0);
    assert_compare(dup2(ends[1], STDERR_FILENO), >=, 0);
    mdot_status status = r->call(object);
    assert_compare(dup2(here, STDERR_FILENO), >=, 0);
    close(here);
    close(ends[1]);
    ssize_t got = read(ends[0], out_words, capacity - 1);
    close(ends[0]);
    out_words[got > 0 ? got : 0] = '\0';
    return status;
}

static void expect_refused(const row *r, void *object, const char *why)
{
    char printed[1024], begin[128];
    snprintf(begin, sizeof begin, "mdot: %s: ", r->function);
    mdot_status status = listen(r, object, printed, sizeof printed);
    if (status != MDOT_INVALID_ARGUMENT || strncmp(printed, begin, strlen(begin)) != 0 || strstr(printed, why) == NULL)
        fail_msg("%s with a %s that %s: %s, \"%s\"", r->function, r->kind, why, mdot_status_name(status), printed);
}

static void every_call_refuses_destroyed_objects(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        expect_refused(&rows[i], object_of(&destroyed, rows[i].kind), "was destroyed before");
}

static void every_call_refuses_objects_of_another_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        bool is_job = strcmp(rows[i].kind, "mdot_job") == 0;
        expect_refused(&rows[i], is_job ? (void *)alive.context : (void *)alive.job, "invalid handle");
    }
}

static void every_call_refuses_a_context_in_use(void **state)
{
    (void)state;
    assert_int_equal(rt_handle_enter(alive.context, "test", NULL), MDOT_OK);
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].kind, "mdot_context") == 0) expect_refused(&rows[i], alive.context, "is in use");
    rt_handle_leave(alive.context);
}

/* The context is free after each refusal, and also after each other call with any result. */
static void a_context_is_free_after_every_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].kind, "mdot_context") != 0 || strcmp(rows[i].function, "mdot_context_destroy") == 0 ||
            strncmp(rows[i].function, "mdot_run_", strlen("mdot_run_")) == 0)
            continue;
        (void)rows[i].call(alive.context);
        if (rt_handle_enter(alive.context, rows[i].function, NULL) != MDOT_OK) fail_msg("%s", rows[i].function);
        rt_handle_leave(alive.context);
    }
    mdot_encoding_destroy(no_encoding);
    mdot_job_inputs_destroy(no_set);
    mdot_explanation_destroy(no_explanation);
    mdot_calibration_destroy(no_calibration);
}

/* ---- Completeness of the rows ------------------------------------------------------------------------------------ */

static char *read_text(const char *name)
{
    enum { CAPACITY = 1 << 17 };
    char path[1024], *text = calloc(CAPACITY, 1);
    assert_non_null(text);
    snprintf(path, sizeof path, "%s/%s", MDOT_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("%s is not there", path);
    assert_compare(fread(text, 1, CAPACITY - 1, file), <, CAPACITY - 1);
    fclose(file);
    return text;
}

static void blank_comments(char *text)
{
    for (char *at = text, *end; (at = strstr(at, "/*")) != NULL; at = end) {
        end = strstr(at, "*/");
        assert_non_null(end);
        end += 2;
        memset(at, ' ', (size_t)(end - at));
    }
}

static bool is_of_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* Finds the next occurrence of `name` as a whole word. */
static const char *find_word(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at += length)
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[length])) return at;
    return NULL;
}

/* Finds the parameters of a function in the headers. Returns false if the declaration is absent. */
static bool find_parameters(const char *headers, const char *function, char *out, size_t capacity)
{
    for (const char *at = headers; (at = find_word(at, function)) != NULL; at++) {
        const char *begin = at + strlen(function), *end = *begin == '(' ? strstr(begin, ");") : NULL;
        if (end == NULL) continue;
        assert_compare((size_t)(end - begin), <, capacity);
        memcpy(out, begin, (size_t)(end - begin));
        out[end - begin] = '\0';
        return true;
    }
    return false;
}

/* "mdot_job *job" and "mdot_job *const *jobs" take an object; "mdot_job **out_job" returns one. */
static bool takes(const char *parameters, const char *kind)
{
    for (const char *at = parameters; (at = find_word(at, kind)) != NULL; at++) {
        const char *behind = at + strlen(kind);
        if (strncmp(behind, " *", 2) == 0 && behind[2] != '*') return true;
    }
    return false;
}

static bool has_row(const char *function, const char *kind)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].function, function) == 0 && strcmp(rows[i].kind, kind) == 0) return true;
    return false;
}

enum { MOST_KINDS = 16, NAME_BYTES = 64 };

/* Structures that the headers leave undefined: typedef struct X X; */
static size_t find_kinds(const char *headers, char out[MOST_KINDS][NAME_BYTES])
{
    static const char begin[] = "typedef struct ";
    size_t count = 0;
    char name[NAME_BYTES], again[NAME_BYTES], end;
    for (const char *at = headers; (at = strstr(at, begin)) != NULL; at++) {
        if (sscanf(at, "typedef struct %63[a-z0-9_] %63[a-z0-9_]%c", name, again, &end) != 3 || end != ';') continue;
        assert_compare(count, <, MOST_KINDS);
        assert_string_equal(name, again);
        memcpy(out[count++], name, sizeof name);
    }
    return count;
}

static void every_function_that_takes_an_object_has_a_row(void **state)
{
    (void)state;
    static const char *const names[] = {
        "mdot_base.h",    "mdot.h",         "mdot_run.h",    "mdot_job.h",          "mdot_predict.h",
        "mdot_program.h", "mdot_explain.h", "mdot_beside.h", "mdot_calibrate.h",    "mdot_record.h",
        "mdot_plan.h",    "mdotjob.h",      "mdotc.h",       "mdot_configuration.h"};
    static const char *const maps[] = {"runtime/libmdot.map", "frontend/libmdotjob.map", "compiler/libmdotc.map"};
    enum { HEADERS = sizeof names / sizeof names[0], MAPS = sizeof maps / sizeof maps[0] };
    char *headers[HEADERS], kinds[MOST_KINDS][NAME_BYTES], parameters[2048], path[128], line[NAME_BYTES];
    size_t kind_count = 0, found = 0;
    for (size_t i = 0; i < HEADERS; i++) {
        snprintf(path, sizeof path, "include/mdot/%s", names[i]);
        headers[i] = read_text(path);
        blank_comments(headers[i]);
        kind_count += find_kinds(headers[i], kinds + kind_count);
    }
    assert_int_equal(kind_count, 9);
    for (size_t m = 0; m < MAPS; m++) {
        char *map = read_text(maps[m]);
        for (const char *at = map; (at = strchr(at, '\n')) != NULL; at++) {
            if (sscanf(at, " %63[a-z0-9_];", line) != 1 || strncmp(line, "mdot", 4) != 0) continue;
            bool is_declared = false;
            for (size_t i = 0; i < HEADERS && !is_declared; i++)
                is_declared = find_parameters(headers[i], line, parameters, sizeof parameters);
            if (!is_declared) fail_msg("no header declares %s", line);
            for (size_t k = 0; k < kind_count; k++) {
                if (!takes(parameters, kinds[k])) continue;
                found++;
                if (!has_row(line, kinds[k])) fail_msg("%s takes a %s and has no row for it", line, kinds[k]);
            }
        }
        free(map);
    }
    assert_int_equal(found, ROWS);
    for (size_t i = 0; i < HEADERS; i++) free(headers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_refuses_destroyed_objects),
        cmocka_unit_test(every_call_refuses_objects_of_another_kind),
        cmocka_unit_test(every_call_refuses_a_context_in_use),
        cmocka_unit_test(a_context_is_free_after_every_call),
        cmocka_unit_test(every_function_that_takes_an_object_has_a_row),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    setenv("MDOT_VALIDATE", "1", 1); /* before the first object exists */
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
