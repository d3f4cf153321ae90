/* parcel.h — how a job travels from the user's command to the controller: as text in the environment that Slurm keeps
 * for prolog and epilog, which SPANK's spank_job_control_setenv writes and job_submit sees as spank_job_env.
 *
 *     MDOT_SETTINGS   what stood behind the file in --mdot=
 *     MDOT_PROBLEM    why there is no job, where there is none
 *     MDOT_JOB_1 …    the bytes of the `.job`, in base64 (RFC 4648), in pieces
 *
 * Pieces, because Linux refuses to run a program with a variable of 128 KiB: prolog and epilog would fail where a
 * controller without this plugin leaves the variables in. Slurm adds SPANK_ before their names; both are read. */
#ifndef SL_PARCEL_H
#define SL_PARCEL_H

#include "mdot/mdot_base.h"

enum {
    SL_PIECE_BYTES = 48 * 1024, /* of a job in one variable, whose text is a third longer */
    SL_PIECE_COUNT = 16,
    SL_PIECE_NAME_BYTES = 16, /* "MDOT_JOB_16" */
    SL_MAX_JOB_BYTES = SL_PIECE_COUNT * SL_PIECE_BYTES
};

#define SL_SETTINGS_NAME "MDOT_SETTINGS"
#define SL_PROBLEM_NAME "MDOT_PROBLEM"

/* The `piece`-th variable, from 0 on: its name and text. The text is the caller's to free; NULL without memory. False
 * behind the last one. */
bool sl_parcel_piece(const void *job, size_t job_bytes, size_t piece, char out_name[SL_PIECE_NAME_BYTES],
                     char **out_text);

typedef struct sl_parcel {
    const char *settings, *problem; /* lent by the environment; NULL where they are not in it */
    unsigned char *job;             /* NULL where there is none; sl_parcel_close frees it */
    size_t job_bytes;
} sl_parcel;

/* Some of `count` strings NAME=TEXT, NULL among them passed over, are a parcel's. */
bool sl_parcel_is_in(const char *const *environment, size_t count);

/* MALFORMED for a job that lacks a piece or is no base64, OUT_OF_RANGE for one beyond `most_bytes`. Looks at no more
 * than such a job may take, however long texts are. */
mdot_status sl_parcel_open(const char *const *environment, size_t count, size_t most_bytes, sl_parcel *out_parcel,
                           mdot_error *err);
void sl_parcel_close(sl_parcel *parcel);

/* `variable`, NAME=TEXT, is a parcel's: the controller takes it out of what Slurm keeps. */
bool sl_parcel_owns(const char *variable);

#endif
