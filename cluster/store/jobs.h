/* jobs.h — adding a network within a transaction of the caller. */
#ifndef ST_JOBS_H
#define ST_JOBS_H

#include "store/records.h"

/* Adds a job under its digest; `insert` is the prepared statement of the table of jobs. */
mdot_status st_add_job(mdot_store *store, sqlite3_stmt *insert, const mdot_job *job, const char *name,
                       const char *digest, mdot_error *err);

#endif
