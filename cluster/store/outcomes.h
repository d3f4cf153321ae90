/* outcomes.h — executions of jobs in the database. */
#ifndef ST_OUTCOMES_H
#define ST_OUTCOMES_H

#include "store/records.h"

/* Adds or updates an outcome in the transaction of the caller, and counts it. */
mdot_status st_add_outcome(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_outcome *outcome,
                           mdot_store_import *counts, mdot_error *err);

#endif
