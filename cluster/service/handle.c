/* handle.c — the table of endpoints, the small ones, and the way of a request through them. */
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char json_text[] = "application/json", problem_type[] = "application/problem+json";

/* ---- Small endpoints --------------------------------------------------------------------------------------------- */

static mdot_status handle_health(sv_state *state, const sv_request *request, struct json_object *question, FILE *out,
                                 mdot_error *err)
{
    if (atomic_load(&state->is_draining) && strcmp(request->path, "/readyz") == 0)
        return mdot_fail(err, MDOT_IO, "stopping");
    fputs("ok\n", out);
    return MDOT_OK;
}

static mdot_status handle_metrics(sv_state *state, const sv_request *request, struct json_object *question, FILE *out,
                                  mdot_error *err)
{
    const char *names[SV_ENDPOINTS];
    for (size_t i = 0; i < SV_ENDPOINTS; i++) names[i] = i < SV_ROUTE_COUNT ? sv_routes[i].name : "other";
    sv_metrics_print(&state->metrics, names, out);
    sv_jobs_count count = sv_jobs_get_count(state->jobs);
    sv_model *model = sv_state_model(state);
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {{"jobs", "gauge", "jobs in memory", (double)count.jobs},
                {"jobs_bytes", "gauge", "memory of jobs and encodings", (double)count.bytes},
                {"job_hits_total", "counter", "requests for a known job", (double)count.hits},
                {"job_misses_total", "counter", "requests for an unknown job", (double)count.misses},
                {"job_evictions_total", "counter", "jobs that made room", (double)count.evictions},
                {"encodings_total", "counter", "encoded jobs", (double)count.encodings},
                {"generation", "gauge", "number of the loaded model", (double)model->generation}};
    sv_model_release(model);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        sv_metrics_print_one(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    return MDOT_OK;
}

/* The GPU table, in the form of `mdot gpus --json`. */
static mdot_status handle_gpus(sv_state *state, const sv_request *request, struct json_object *question, FILE *out,
                               mdot_error *err)
{
    sv_model *model = sv_state_model(state);
    fputs("{\"schema\": \"mdot-gpus/1\", \"gpus\": [", out);
    for (size_t i = 0; i < model->gpus.count; i++) {
        const mdot_gpu *gpu = &model->gpus.item[i];
        fprintf(out, "%s\n  {\"name\": ", i > 0 ? "," : "");
        cli_json_string(out, gpu->name);
        for (size_t k = 0; k < SV_GPU_NUMBERS; k++)
            fprintf(out, ", \"%s\": %g", sv_gpu_numbers[k].name,
                    *(const double *)((const char *)gpu + sv_gpu_numbers[k].offset));
        fprintf(out, ", \"source\": \"%s\"}", i < model->gpus.site_count ? "site" : "mdot");
    }
    fputs("\n ]}\n", out);
    sv_model_release(model);
    return MDOT_OK;
}

/* ---- Routes ------------------------------------------------------------------------------------------------------ */

#define ROUTE(METHOD, PATH, NAME, TYPE, HANDLE, ...)                                                                   \
    {                                                                                                                  \
        .method = (METHOD), .path = (PATH), .name = (NAME), .type = (TYPE), .handle = (HANDLE), __VA_ARGS__            \
    }
const sv_route sv_routes[SV_ROUTE_COUNT] = {
    ROUTE("POST", "/v1/jobs", "jobs", json_text, sv_handle_jobs, .takes_job = true, .is_slow = true),
    ROUTE("POST", "/v1/predict", "predict", json_text, sv_handle_predict, .is_slow = false),
    ROUTE("POST", "/v1/plan", "plan", json_text, sv_handle_plan, .is_slow = true),
    ROUTE("POST", "/v1/observations", "observations", json_text, sv_handle_observations, .is_slow = true),
    ROUTE("POST", "/v1/durations", "durations", json_text, sv_handle_durations, .is_slow = false),
    ROUTE("GET", "/v1/gpus", "gpus", json_text, handle_gpus, .is_slow = false),
    ROUTE("GET", "/metrics", "metrics", "text/plain; version=0.0.4", handle_metrics, .is_slow = false),
    ROUTE("GET", "/healthz", "healthz", "text/plain", handle_health, .is_open = true),
    ROUTE("GET", "/readyz", "readyz", "text/plain", handle_health, .is_open = true),
};

const sv_route *sv_find_route(const char *method, const char *path, int *out_status)
{
    *out_status = 404;
    for (size_t i = 0; i < SV_ROUTE_COUNT; i++) {
        if (strcmp(path, sv_routes[i].path) != 0) continue;
        if (strcmp(method, sv_routes[i].method) == 0) return &sv_routes[i];
        *out_status = 405;
    }
    return NULL;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

void sv_answer_free(sv_answer *answer)
{
    free(answer->body);
    *answer = (sv_answer){0};
}

void sv_answer_problem(sv_answer *out, int status, const char *detail)
{
    static const struct {
        int status;
        const char *title, *detail;
    } known[] = {{400, "Bad Request", ""},
                 {401, "Unauthorized", "this address needs the header Authorization: Bearer TOKEN"},
                 {404, "Not Found", "there is no such path"},
                 {405, "Method Not Allowed", "this path has another method"},
                 {408, "Request Timeout", ""},
                 {413, "Content Too Large", "the body is larger than this path accepts"},
                 {422, "Unprocessable Content", ""},
                 {429, "Too Many Requests", "too many requests from this client"},
                 {500, "Internal Server Error", ""},
                 {503, "Service Unavailable", "the service is busy"}};
    size_t row = 0;
    while (row + 1 < sizeof known / sizeof *known && known[row].status != status) row++;
    bs_memstream stream;
    *out = (sv_answer){.status = status, .type = problem_type};
    if (!bs_memstream_open(&stream)) return;
    fprintf(stream.file,
            "{\"type\": \"about:blank\", \"title\": \"%s\", \"status\": %d, \"detail\": ", known[row].title, status);
    cli_json_string(stream.file, detail != NULL ? detail : known[row].detail);
    fputs("}\n", stream.file);
    out->body = bs_memstream_close(&stream, &out->body_bytes);
}

static int status_of(mdot_status status)
{
    static const int statuses[] = {
        [MDOT_INVALID_ARGUMENT] = 422, [MDOT_NOT_FOUND] = 404,    [MDOT_IO] = 503,      [MDOT_MALFORMED] = 400,
        [MDOT_UNSUPPORTED] = 422,      [MDOT_INCOMPATIBLE] = 422, [MDOT_CORRUPT] = 503, [MDOT_OUT_OF_RANGE] = 413,
        [MDOT_OUT_OF_MEMORY] = 503,    [MDOT_TOOLCHAIN] = 500,    [MDOT_DEVICE] = 500,
    };
    bool is_known = (size_t)status < sizeof statuses / sizeof *statuses && statuses[status] > 0;
    return is_known ? statuses[status] : 500;
}

static void answer(const sv_route *route, sv_state *state, const sv_request *request, sv_answer *out)
{
    mdot_error err = {0};
    bs_memstream stream;
    struct json_object *question = NULL;
    *out = (sv_answer){.status = 200, .type = route->type};
    mdot_status status = bs_memstream_open(&stream) ? MDOT_OK : mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    bool has_question = strcmp(route->method, "POST") == 0 && !route->takes_job;
    if (status == MDOT_OK && has_question && *request->query != '\0')
        status = mdot_fail(&err, MDOT_INVALID_ARGUMENT, "this path takes no query: put \"%.64s\" into the body",
                           request->query);
    if (status == MDOT_OK && has_question) status = sv_json_read(request->body, request->body_bytes, &question, &err);
    if (status == MDOT_OK) status = route->handle(state, request, question, stream.file, &err);
    out->body = bs_memstream_close(&stream, &out->body_bytes);
    if (status == MDOT_OK && out->body == NULL) status = mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    if (status != MDOT_OK) {
        free(out->body);
        sv_answer_problem(out, status_of(status), err.message);
    }
    json_object_put(question);
}

void sv_handle(sv_state *state, const sv_request *request, sv_answer *out)
{
    int status;
    int64_t begin = sv_now_ns();
    const sv_route *route = sv_find_route(request->method, request->path, &status);
    if (route != NULL)
        answer(route, state, request, out);
    else
        sv_answer_problem(out, status, NULL);
    size_t index = route != NULL ? (size_t)(route - sv_routes) : SV_ENDPOINTS - 1;
    sv_metrics_request(&state->metrics, index, out->status, (uint64_t)(sv_now_ns() - begin));
}
