#include "base/status.h"
#include "slurm/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sl_parcel_piece(const void *job, size_t job_bytes, size_t piece, char out_name[SL_PIECE_NAME_BYTES],
                     char **out_text)
{
    size_t begin = piece * SL_PIECE_BYTES;
    if (begin >= job_bytes || piece >= SL_PIECE_COUNT) return false;
    size_t bytes = job_bytes - begin < SL_PIECE_BYTES ? job_bytes - begin : SL_PIECE_BYTES;
    snprintf(out_name, SL_PIECE_NAME_BYTES, "MDOT_JOB_%zu", piece + 1);
    *out_text = malloc(sl_base64_text_bytes(bytes));
    if (*out_text != NULL) sl_base64_write((const unsigned char *)job + begin, bytes, *out_text);
    return true;
}

/* Returns the text behind the name in NAME=TEXT; NULL for another name. */
static const char *text_of(const char *variable, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(variable, "SPANK_", 6) == 0) variable += 6;
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1 : NULL;
}

static const char *find(const char *const *environment, size_t count, const char *name)
{
    const char *text = NULL;
    for (size_t i = 0; text == NULL && i < count; i++)
        if (environment[i] != NULL) text = text_of(environment[i], name);
    return text;
}

/* Appends a piece to the job. */
static mdot_status add_piece(const char *text, size_t most_bytes, sl_parcel *parcel, mdot_error *err)
{
    /* reads at most one piece's length, so an endless text costs nothing */
    size_t length = strnlen(text, sl_base64_text_bytes(SL_PIECE_BYTES));
    size_t piece_bytes = length / 4 * 3;
    if (length >= sl_base64_text_bytes(SL_PIECE_BYTES) || parcel->job_bytes + piece_bytes > most_bytes + 2)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the job is larger than %zu bytes", most_bytes);
    unsigned char *job = realloc(parcel->job, parcel->job_bytes + piece_bytes + 1);
    if (job == NULL) return BS_OUT_OF_MEMORY(err, "a job of %zu bytes", piece_bytes);
    parcel->job = job;
    size_t bytes;
    if (!sl_base64_read(text, length, job + parcel->job_bytes, &bytes))
        return mdot_fail(err, MDOT_MALFORMED, "the job is not valid base64");
    parcel->job_bytes += bytes;
    if (parcel->job_bytes > most_bytes)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the job is larger than %zu bytes", most_bytes);
    return MDOT_OK;
}

mdot_status sl_parcel_open(const char *const *environment, size_t count, size_t most_bytes, sl_parcel *out_parcel,
                           mdot_error *err)
{
    sl_parcel parcel = {.settings = find(environment, count, SL_SETTINGS_NAME),
                        .problem = find(environment, count, SL_PROBLEM_NAME)};
    mdot_status status = MDOT_OK;
    size_t piece = 0;
    for (; status == MDOT_OK && piece < SL_PIECE_COUNT; piece++) {
        char name[SL_PIECE_NAME_BYTES];
        snprintf(name, sizeof name, "MDOT_JOB_%zu", piece + 1);
        const char *text = find(environment, count, name);
        if (text == NULL) break;
        if (piece > 0 && parcel.job_bytes % SL_PIECE_BYTES != 0)
            status = mdot_fail(err, MDOT_MALFORMED, "piece %zu of the job is truncated", piece);
        if (status == MDOT_OK) status = add_piece(text, most_bytes, &parcel, err);
    }
    if (status == MDOT_OK && piece > 0 && parcel.job_bytes == 0)
        status = mdot_fail(err, MDOT_MALFORMED, "the job is empty");
    if (status != MDOT_OK) {
        sl_parcel_close(&parcel);
        return status;
    }
    *out_parcel = parcel;
    return MDOT_OK;
}

void sl_parcel_close(sl_parcel *parcel)
{
    free(parcel->job);
    *parcel = (sl_parcel){0};
}

bool sl_parcel_is_in(const char *const *environment, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (environment[i] != NULL && sl_parcel_owns(environment[i])) return true;
    return false;
}

bool sl_parcel_owns(const char *variable)
{
    if (strncmp(variable, "SPANK_", 6) == 0) variable += 6;
    return strncmp(variable, "MDOT_", 5) == 0;
}
