/* parcel.h — how a job travels from the user's command to the controller. It is text in the environment that Slurm
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
#ifndef SL_PARCEL_H
#define SL_PARCEL_H

#include "mdot/mdot_base.h"

enum {
    SL_PIECE_BYTES = 48 * 1024, /* bytes of a job in one variable, whose text is a third longer */
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

#endif
