/* jobs.c — POST /v1/jobs: a job in the body, ONNX or `.job`. The answer names it by a digest. */
#include "base/text.h"
#include "service/job_cache.h"
#include "service/read_job.h"

#include <stdlib.h>
#include <string.h>

/* Parameters of the query: options of the reader. */
static const char *const parameters[] = {"dim", "frozen", "trained"};
enum { PARAMETERS = sizeof parameters / sizeof *parameters, TEXT_BYTES = 512 };

typedef struct reading {
    char text[SV_QUERY_TEXTS][TEXT_BYTES]; /* "--dim=sequence=128" */
    const char *option[SV_QUERY_TEXTS];
    size_t count;
} reading;

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX and plus signs; false for invalid or unprintable text, or text that is too long. */
static bool decode(const char *text, size_t length, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%') {
            int high = i + 2 < length ? digit(text[i + 1]) : -1, low = i + 2 < length ? digit(text[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            c = (char)(16 * high + low);
            i += 2;
        }
        if (c == '\0') return false;
        out[used++] = c;
    }
    out[used] = '\0';
    return used + 1 < size && bs_is_printable(out);
}

static mdot_status read_query(const char *query, reading *out, mdot_error *err)
{
    for (const char *cursor = query; *cursor != '\0';) {
        size_t length = strcspn(cursor, "&"), name = strcspn(cursor, "=&"), i = 0;
        char value[TEXT_BYTES - 16];
        while (i < PARAMETERS && (strlen(parameters[i]) != name || strncmp(parameters[i], cursor, name) != 0)) i++;
        if (i == PARAMETERS)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the query takes dim, frozen and trained, not \"%.*s\"",
                             (int)(name < 64 ? name : 64), cursor);
        if (out->count == SV_QUERY_TEXTS)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "the query has more than %d parameters", SV_QUERY_TEXTS);
        if (name == length || !decode(cursor + name + 1, length - name - 1, value, sizeof value))
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s needs a value, for example dim=sequence=128",
                             parameters[i]);
        snprintf(out->text[out->count], TEXT_BYTES, "--%s=%s", parameters[i], value);
        out->option[out->count] = out->text[out->count];
        out->count++;
        cursor += length + (cursor[length] == '&');
    }
    return MDOT_OK;
}

static void print_warnings(FILE *stream, char *text)
{
    static const char head[] = "mdotd: warning: ";
    const char *comma = "";
    fputs(", \"warnings\": [", stream);
    for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        if (strncmp(line, head, sizeof head - 1) != 0) continue;
        fputs(comma, stream);
        cli_json_string(stream, line + sizeof head - 1);
        comma = ", ";
    }
    fputs("]", stream);
}

mdot_status sv_handle_jobs(sv_state *state, const sv_request *request, struct json_object *question, FILE *out,
                           mdot_error *err)
{
    reading options = {.count = 0};
    sv_read_text text = {.used = 0};
    char network[MDOT_STORE_DIGEST_BYTES];
    unsigned char *bytes = NULL;
    size_t size = 0;
    const sv_job *job = NULL;
    mdot_status status = read_query(request->query, &options, err);
    if (status == MDOT_OK && request->body_bytes == 0)
        status = mdot_fail(err, MDOT_MALFORMED, "the body is empty: send an ONNX file or a .job file");
    if (status != MDOT_OK) return status;
    status = sv_read_job(&state->reader, request->body, request->body_bytes, options.option, options.count, &bytes,
                         &size, &text, err);
    atomic_fetch_add(status == MDOT_OK ? &state->metrics.jobs_read : &state->metrics.jobs_refused, 1);
    if (status == MDOT_OK) status = sv_jobs_add(state->jobs, bytes, size, &job, err);
    if (status == MDOT_OK) status = mdot_store_digest(job->job, network, err);
    if (status == MDOT_OK) {
        fprintf(out,
                "{\"mdot\": \"%s\", \"job\": \"%s\", \"network\": \"%s\", \"operators\": %zu, \"unknown\": %zu, "
                "\"parameters\": %.0f, \"frozen_parameters\": %.0f, \"file_batch\": %lld",
                mdot_version(), job->digest, network, job->info.operator_count, job->info.unknown_count,
                job->info.parameters, job->info.frozen_parameters, (long long)job->info.batch);
        print_warnings(out, text.text);
        fputs("}\n", out);
    }
    sv_jobs_release(state->jobs, job);
    free(bytes);
    return status;
}
