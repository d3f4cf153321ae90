/* handle.c — the table of endpoints, and the small ones. */
#include "base/text.h"
#include "service/job_cache.h"
#include "service/service.h"

#include <string.h>
#include <time.h>

static const char text_type[] = "text/plain; version=0.0.4";

/* ---- Small endpoints --------------------------------------------------------------------------------------------- */

static void answer_text(sv_answer *out, int status, const char *text)
{
    *out = (sv_answer){.status = status, .type = "text/plain", .body = strdup(text), .body_bytes = strlen(text)};
}

static void handle_health(sv_state *state, const sv_request *request, sv_answer *out)
{
    (void)state;
    (void)request;
    answer_text(out, 200, "ok\n");
}

static void handle_ready(sv_state *state, const sv_request *request, sv_answer *out)
{
    (void)request;
    if (atomic_load(&state->is_draining))
        answer_text(out, 503, "stopping\n");
    else
        answer_text(out, 200, "ready\n");
}

static void handle_metrics(sv_state *state, const sv_request *request, sv_answer *out)
{
    (void)request;
    const char *names[SV_ENDPOINTS];
    bs_memstream stream;
    for (size_t i = 0; i < SV_ENDPOINTS; i++) names[i] = i < SV_ROUTE_COUNT ? sv_routes[i].name : "other";
    if (!bs_memstream_open(&stream)) {
        sv_answer_problem(out, 503, "memory ran out");
        return;
    }
    sv_metrics_print(&state->metrics, names, stream.file);
    sv_jobs_count count = sv_jobs_get_count(state->jobs);
    sv_metrics_print_one(stream.file, "jobs", "gauge", "jobs in memory", (double)count.jobs);
    sv_metrics_print_one(stream.file, "jobs_bytes", "gauge", "memory of jobs and encodings", (double)count.bytes);
    sv_metrics_print_one(stream.file, "job_hits_total", "counter", "requests for a known job", (double)count.hits);
    sv_metrics_print_one(stream.file, "job_misses_total", "counter", "requests for an unknown job",
                         (double)count.misses);
    sv_metrics_print_one(stream.file, "job_evictions_total", "counter", "jobs that made room", (double)count.evictions);
    sv_metrics_print_one(stream.file, "encodings_total", "counter", "encoded jobs", (double)count.encodings);
    sv_model *model = sv_state_model(state);
    sv_metrics_print_one(stream.file, "generation", "gauge", "number of the loaded model", (double)model->generation);
    sv_model_release(model);
    sv_answer_stream(out, &stream, text_type);
}

/* ---- Routes ------------------------------------------------------------------------------------------------------ */

#define ROUTE(METHOD, PATH, NAME, HANDLE, ...)                                                                         \
    {                                                                                                                  \
        .method = (METHOD), .path = (PATH), .name = (NAME), .handle = (HANDLE), __VA_ARGS__                            \
    }
const sv_route sv_routes[SV_ROUTE_COUNT] = {
    ROUTE("POST", "/v1/jobs", "jobs", sv_handle_jobs, .takes_job = true, .is_slow = true),
    ROUTE("POST", "/v1/predict", "predict", sv_handle_predict, .is_slow = false),
    ROUTE("POST", "/v1/plan", "plan", sv_handle_plan, .is_slow = true),
    ROUTE("POST", "/v1/observations", "observations", sv_handle_observations, .is_slow = true),
    ROUTE("POST", "/v1/durations", "durations", sv_handle_durations, .is_slow = false),
    ROUTE("GET", "/v1/gpus", "gpus", sv_handle_gpus, .is_slow = false),
    ROUTE("GET", "/metrics", "metrics", handle_metrics, .is_slow = false),
    ROUTE("GET", "/healthz", "healthz", handle_health, .is_open = true),
    ROUTE("GET", "/readyz", "readyz", handle_ready, .is_open = true),
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

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sv_handle(sv_state *state, const sv_request *request, sv_answer *out)
{
    int status;
    uint64_t begin = now_ns();
    const sv_route *route = sv_find_route(request->method, request->path, &status);
    if (route != NULL)
        route->handle(state, request, out);
    else
        sv_answer_problem(out, status, status == 405 ? "this path has another method" : "there is no such path");
    size_t index = route != NULL ? (size_t)(route - sv_routes) : SV_ENDPOINTS - 1;
    sv_metrics_request(&state->metrics, index, out->status, now_ns() - begin);
}
