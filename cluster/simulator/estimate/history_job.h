/* history_job.h — a job of a trace as a history sees it. */
#ifndef SC_HISTORY_JOB_H
#define SC_HISTORY_JOB_H

#include "simulator/core/workload.h"

/* The texts are the job's. A job without a user has its group as its user. */
mdot_history_job sc_history_job_of(const sc_job *job);

#endif
