/* store_actions.h — parts of mdot-store: mdot_store.c reads the command line, and each store_*.c runs some actions. */
#ifndef STORE_ACTIONS_H
#define STORE_ACTIONS_H

#include "base/command/command.h"
#include "base/training/job_argument.h"
#include "mdot/mdot_store.h"

#define PROGRAM "mdot-store"

/* The command line. NULL and 0 mean that an option is absent. */
typedef struct store_request {
    const char *output, *jobs, *gpu, *software, *digest, *since, *cluster, *model_path, *calibration_path;
    bool plain, json, quiet;
} store_request;

/* An action gets the operands behind its name; the first is the store. It returns the exit status of the command. */
typedef int store_action(const store_request *request, char **operands, int count);

store_action store_add, store_import, store_export, store_list, store_jobs, store_outcomes, store_outliers,
    store_calibrate, store_drift, store_check, store_recover, store_migrate;

/* Opens an existing store, for reading only where this user may not write. Groups and predictions then stay in memory.
 * The second form reports a failure, and returns NULL then. */
mdot_status store_open_existing(const char *path, mdot_store **out_store, mdot_error *err);
mdot_store *store_open_to_read(const char *path);

/* Fills a filter from the options; false after a usage error. */
bool store_filter(const store_request *request, mdot_store_filter *out);

/* Whether `outliers` and `drift` name a host: it is certainly (p < 0.01) slower, by at least 5 %. */
static inline bool store_is_slow(const mdot_store_host *h) { return h->p < 0.01 && h->ratio > 1.05; }

/* A count with its noun: "1 row", "2 rows". */
typedef struct store_counted {
    char text[48];
} store_counted;
store_counted store_count_of(uint64_t count, const char *noun);

/* Prints seconds since 1970 as "2026-11-24T10:00:00Z", or "" for 0. */
typedef struct store_time {
    char text[32];
} store_time;
const char *store_print_time(store_time *buffer, int64_t seconds);

/* Writes all jobs of the store to a folder as DIGEST.job; the folder must exist. Files that are there stay. */
mdot_status store_write_jobs(mdot_store *store, const char *folder, mdot_error *err);

/* Makes a temporary folder with all jobs. The caller removes it, also after a failure; `folder` may be NULL. */
mdot_status store_make_folder(mdot_store *store, char **out_folder, mdot_error *err);
void store_remove_folder(char *folder);

#endif
