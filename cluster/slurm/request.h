/* request.h — a job on the way from the user's command to the controller: the text behind --mdot=, the named file, and
 * the parcel in the environment. */
#ifndef SL_REQUEST_H
#define SL_REQUEST_H

#include "mdot/mdot.h"
#include "mdot/mdot_base.h"

#include <stdbool.h>
#include <stddef.h>

/* The text behind --mdot=: a training job's file, its training configuration and its length.
 *
 *     resnet50.job,batch=256,precision=amp,epochs=90,dataset=1281167
 *
 * The submit side parses it to find the file and reports faults to the user. The controller parses the settings
 * behind the file again, because it must not trust the user's side.
 */

enum { SL_REQUEST_BYTES = 1024 }; /* size of the whole text with NUL */

typedef struct sl_request {
    char file[SL_REQUEST_BYTES]; /* empty if the text names none */
    mdot_configuration training; /* GPUs are left out, because Slurm knows them; batch 0: the job's batch */
    bool has_optimizer;          /* the text names an optimizer; otherwise the job's is used */
    double steps;                /* 0: unspecified */
    double epochs, dataset;      /* set both or neither; 0: unspecified */
} sl_request;

/* `text` begins with a file unless it begins with KEY=. INVALID_ARGUMENT names the key; messages are free of control
 * characters. */
mdot_status sl_request_parse(const char *text, sl_request *out_request, mdot_error *err);

/* Returns the part of `text` behind the file. */
const char *sl_request_settings(const char *text);

/* Returns the step count for the whole training, given the samples per step; 0 if unspecified. */
double sl_request_steps(const sl_request *request, double samples_of_step);

/* ---- User file --------------------------------------------------------------------------------------------------- */

/* Reads a job named by a user, on the submitting machine. */

/* Reads a `.job` file on the machine where the user submits; the caller frees the bytes. INVALID_ARGUMENT for anything
 * other than a regular file, so that it never waits for a pipe or a device; NOT_FOUND and IO; OUT_OF_RANGE beyond
 * `most_bytes`. Other errors are those of mdot_job_parse, with the file's name. */
mdot_status sl_user_file_read(const char *path, size_t most_bytes, unsigned char **out_bytes, size_t *out_count,
                              mdot_error *err);

/* ---- Parcel ------------------------------------------------------------------------------------------------------ */

/* How a job travels from the user's command to the controller. It is text in the environment that Slurm
 * keeps for prolog and epilog: SPANK's spank_job_control_setenv writes it and job_submit sees it as spank_job_env.
 *
 *     MDOT_SETTINGS   the settings behind the file in --mdot=
 *     MDOT_PROBLEM    if there is no job: the reason
 *     MDOT_JOB_1 …    the bytes of the `.job`, in base64 (RFC 4648), in pieces
 *
 * The job is split because Linux refuses to run a program with a variable of 128 KiB. Prolog and epilog would
 * therefore fail if a controller without this plugin leaves the variables in. Slurm adds SPANK_ before their names;
 * both forms are read.
 */

enum {
    SL_PIECE_BYTES = 48 * 1024, /* bytes of a job in one variable; the text is a third longer */
    SL_PIECE_COUNT = 16,
    SL_PIECE_NAME_BYTES = 16, /* fits "MDOT_JOB_16" */
    SL_MAX_JOB_BYTES = SL_PIECE_COUNT * SL_PIECE_BYTES
};

#define SL_SETTINGS_NAME "MDOT_SETTINGS"
#define SL_PROBLEM_NAME "MDOT_PROBLEM"

/* Returns the name and text of variable `piece`, from 0 on. The caller frees the text; it is NULL if memory ran out.
 * False behind the last piece. */
bool sl_parcel_piece(const void *job, size_t job_bytes, size_t piece, char out_name[SL_PIECE_NAME_BYTES],
                     char **out_text);

typedef struct sl_parcel {
    const char *settings, *problem; /* borrowed from the environment; NULL if absent */
    unsigned char *job;             /* NULL if absent; sl_parcel_close frees it */
    size_t job_bytes;
} sl_parcel;

/* Returns whether the environment, `count` strings NAME=TEXT, contains a parcel. NULL strings are skipped. */
bool sl_parcel_is_in(const char *const *environment, size_t count);

/* MALFORMED for a job with a missing piece or invalid base64, OUT_OF_RANGE for one beyond `most_bytes`. Reads only as
 * much text as such a job needs, so that overlong texts are harmless. */
mdot_status sl_parcel_open(const char *const *environment, size_t count, size_t most_bytes, sl_parcel *out_parcel,
                           mdot_error *err);
void sl_parcel_close(sl_parcel *parcel);

/* Returns whether `variable`, NAME=TEXT, belongs to a parcel. The controller removes such variables. */
bool sl_parcel_owns(const char *variable);

/* ---- Base64 ------------------------------------------------------------------------------------------------------ */

/* Bytes as one-line text (RFC 4648, section 4): padded, without line breaks. */

/* Returns the character count for so many bytes, including the final NUL. */
size_t sl_base64_text_bytes(size_t bytes);
void sl_base64_write(const unsigned char *bytes, size_t count, char *out_text);

/* `out_bytes` must hold length / 4 * 3 bytes. False for text never written by sl_base64_write. */
bool sl_base64_read(const char *text, size_t length, unsigned char *out_bytes, size_t *out_count);

#endif
