/* job.h — a job in memory, shared by job.c and job_file.c. Private to runtime/. */
#ifndef RT_JOB_H
#define RT_JOB_H

#include "mdot/mdot.h"

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their types and inputs point into the two arrays below */
    uint32_t *inputs;
    char *types;
};

/* The largest whole number up to which a double holds every one. */
#define RT_JOB_MAX_COUNT 9007199254740992.0 /* 2^53 */

#endif
