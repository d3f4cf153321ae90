/* fuzz_service.c — requests to mdotd: the first byte selects the endpoint, the second whether the rest is a body or a
 * query. MDOT_ENDPOINT names one endpoint for all inputs, for example predict. 64 zeros in a body stand for the digest
 * of a known job. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/command/command.h"
#include "base/file.h"
#include "service/job_cache.h"
#include "service/service.h"

const cli_command cli_program = {.name = "mdotd"};

enum { DIGITS = SV_SHA256_TEXT - 1 };
static char zeros[DIGITS + 1], digest[DIGITS + 1];

/* Adds the job in MDOT_SERVICE_JOB. */
static void add_job(sv_state *state)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    const sv_job *job = NULL;
    const char *path = getenv("MDOT_SERVICE_JOB");
    memset(zeros, '0', DIGITS);
    memcpy(digest, zeros, DIGITS);
    if (path != NULL && bs_read_file(path, &bytes, &size, NULL) == MDOT_OK &&
        sv_jobs_add(state->jobs, bytes, size, &job, NULL) == MDOT_OK)
        memcpy(digest, job->digest, DIGITS);
    else
        fputs("set MDOT_SERVICE_JOB to a .job file\n", stderr);
    sv_jobs_release(state->jobs, job);
    free(bytes);
}

static sv_state *open_state(void)
{
    static sv_state state = {.reader = {.program = "/bin/false", .folder = "/tmp", .seconds = 1, .memory_mib = 64},
                             .threads = 2,
                             .plan_threads = 1,
                             .plan_seconds = 1};
    static bool is_open;
    mdot_error err = {0};
    if (is_open) return &state;
    if (sv_state_open(&state, 1 << 26, &err) != MDOT_OK) {
        fprintf(stderr, "%s: set MDOT_PREDICTOR\n", err.message);
        exit(2);
    }
    add_job(&state);
    is_open = true;
    return &state;
}

static const sv_route *choose_route(uint8_t byte)
{
    const char *name = getenv("MDOT_ENDPOINT");
    for (size_t i = 0; name != NULL && i < SV_ROUTE_COUNT; i++)
        if (strcmp(sv_routes[i].name, name) == 0) return &sv_routes[i];
    return &sv_routes[byte % SV_ROUTE_COUNT];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sv_answer answer;
    if (size < 2) return 0;
    const sv_route *route = choose_route(bytes[0]);
    char *rest = malloc(size - 1);
    if (rest == NULL) return 0;
    memcpy(rest, bytes + 2, size - 2);
    rest[size - 2] = '\0';
    sv_state *state = open_state();
    char *place = strstr(rest, zeros);
    if (place != NULL) memcpy(place, digest, DIGITS);
    bool is_query = bytes[1] % 2 == 0;
    const sv_request request = {.method = route->method,
                                .path = route->path,
                                .query = is_query ? rest : "",
                                .body = rest,
                                .body_bytes = is_query ? 1 : size - 2,
                                .now_s = 1764000000};
    sv_handle(state, &request, &answer);
    if (answer.status < 200 || answer.status > 599 || answer.body == NULL) abort();
    sv_answer_free(&answer);
    free(rest);
    return 0;
}
