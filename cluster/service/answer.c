/* answer.c — answers in general: problems, and texts of streams (service.h). */
#include "base/command/command.h"
#include "service/service.h"

#include <stdlib.h>

const char sv_json_type[] = "application/json";
static const char problem_type[] = "application/problem+json";

void sv_answer_free(sv_answer *answer)
{
    free(answer->body);
    *answer = (sv_answer){0};
}

void sv_answer_problem(sv_answer *out, int status, const char *detail)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {{400, "Bad Request"},           {401, "Unauthorized"},      {404, "Not Found"},
                  {405, "Method Not Allowed"},    {408, "Request Timeout"},   {413, "Content Too Large"},
                  {422, "Unprocessable Content"}, {429, "Too Many Requests"}, {500, "Internal Server Error"},
                  {503, "Service Unavailable"}};
    const char *title = "";
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status) title = titles[i].title;
    bs_memstream stream;
    *out = (sv_answer){.status = status, .type = problem_type};
    if (!bs_memstream_open(&stream)) return;
    fprintf(stream.file, "{\"type\": \"about:blank\", \"title\": \"%s\", \"status\": %d, \"detail\": ", title, status);
    cli_json_string(stream.file, detail);
    fputs("}\n", stream.file);
    out->body = bs_memstream_close(&stream, &out->body_bytes);
}

void sv_answer_error(sv_answer *out, const mdot_error *err)
{
    static const int statuses[] = {
        [MDOT_INVALID_ARGUMENT] = 422, [MDOT_NOT_FOUND] = 404,    [MDOT_IO] = 503,      [MDOT_MALFORMED] = 400,
        [MDOT_UNSUPPORTED] = 422,      [MDOT_INCOMPATIBLE] = 422, [MDOT_CORRUPT] = 503, [MDOT_OUT_OF_RANGE] = 413,
        [MDOT_OUT_OF_MEMORY] = 503,    [MDOT_TOOLCHAIN] = 500,    [MDOT_DEVICE] = 500,
    };
    bool is_known = (size_t)err->status < sizeof statuses / sizeof *statuses && statuses[err->status] > 0;
    sv_answer_problem(out, is_known ? statuses[err->status] : 500, err->message);
}

void sv_answer_stream(sv_answer *out, bs_memstream *stream, const char *type)
{
    *out = (sv_answer){.status = 200, .type = type};
    out->body = bs_memstream_close(stream, &out->body_bytes);
    if (out->body == NULL) sv_answer_problem(out, 503, "memory ran out");
}
