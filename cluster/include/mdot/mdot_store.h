/* mdot_store.h — the store: measured training steps and job outcomes in one file, for many processes at once.
 *
 * The library is libmdotstore. It needs libmdot and libsqlite3. A store is an SQLite database;
 * docs/reference/formats/store.md describes the tables. It holds
 *
 *   rows        measured steps: a job, GPU and options, and milliseconds
 *   jobs        the rows' networks, each once, recognised by a digest over the operators
 *   outcomes    job executions on a cluster: completed, failed, cancelled, timed out
 *   groups      rows that repeat one measurement, with a robust mean; computed from the rows
 *
 *   Durability  A function that writes returns MDOT_OK after its data are on the disk. They survive a killed process, a
 *               full disk and a power failure. A function that fails changes nothing.
 *   Threading   A store object belongs to one thread at a time. Any number of processes and store objects may read and
 *               write one file at once. A writer waits for another one, up to mdot_store_options.busy_ms.
 *   Callbacks   Visitors get pointers, valid during the call. They return false to stop the visit. They must not call
 *               functions on the same store.
 *   Units       Times are seconds since 1970, and 0 if unknown. Texts are UTF-8; "" if unknown. NULL counts as "".
 *   Errors      See mdot_base.h. CORRUPT: the file is damaged; the message names the remedy, mdot_store_recover. IO:
 *               for example a full disk, or another process that holds the store for too long.
 *
 * Never call the library where a wait is harmful, for example under a lock of slurmctld. */
#ifndef MDOT_STORE_H
#define MDOT_STORE_H

#include <mdot/mdot.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Returns the version of libmdotstore as text.
 *
 * @return for example "0.4.0"; static
 */
const char *mdotstore_version(void);
/* Returns the version of libmdotstore as a number, for comparison with MDOT_VERSION_NUMBER.
 *
 * @return 1000000 * major + 1000 * minor + patch: 0.4.0 is 4000
 */
uint32_t mdotstore_version_number(void);

/* ---- The file ---------------------------------------------------------------------------------------------------- */

/* An open store.
 *
 * @threads a store object belongs to one thread at a time; any number of processes may open one file
 */
typedef struct mdot_store mdot_store;

enum {
    MDOT_STORE_READ_ONLY = 1u << 0, /* refuses writes; needs no permission to write the file */
    MDOT_STORE_EXISTING = 1u << 1,  /* NOT_FOUND for an absent file, instead of creating it */
};

typedef struct mdot_store_options { /* zero selects the default of every field */
    size_t struct_size;
    uint32_t flags;   /* MDOT_STORE_… */
    uint32_t busy_ms; /* longest wait for another writer; 0: 30,000 ms */
} mdot_store_options;

/* A store's file, and numbers of records. */
typedef struct mdot_store_info {
    size_t struct_size;
    uint32_t schema_version; /* version of the file's tables */
    /* 1: the file is on a network file system, and uses a rollback journal instead of WAL, because WAL needs shared
     * memory between processes. 0 or 1 */
    uint32_t is_shared_disk;
    uint64_t row_count;     /* number of measured steps */
    uint64_t job_count;     /* number of jobs */
    uint64_t outcome_count; /* number of outcomes */
} mdot_store_info;

/* Opens a store, and creates it if the file is absent or empty.
 *
 * @param path file name
 * @param options NULL selects all defaults
 * @errors INCOMPATIBLE for tables in another version: a newer store needs a newer library, and an older store needs
 *     mdot_store_migrate; MALFORMED for another kind of file; NOT_FOUND with MDOT_STORE_EXISTING; IO; CORRUPT;
 *     OUT_OF_MEMORY */
mdot_status mdot_store_open(const char *path, const mdot_store_options *options, mdot_store **out_store,
                            mdot_error *err);
/* Closes a store.
 *
 * @param store NULL is accepted
 */
void mdot_store_close(mdot_store *store);
/* Describes the file and counts its records.
 *
 * @param out_info receives the description
 * @errors INVALID_ARGUMENT for an invalid struct_size; IO; CORRUPT; OUT_OF_MEMORY
 */
mdot_status mdot_store_get_info(mdot_store *store, mdot_store_info *out_info, mdot_error *err);
/* Brings an older store to this library's version in one transaction. The file stays as it was on failure.
 *
 * @param path file name
 * @param out_from receives the former version of the tables
 * @errors INCOMPATIBLE for a newer store; NOT_FOUND; MALFORMED; IO; CORRUPT; OUT_OF_MEMORY
 * @threads any */
mdot_status mdot_store_migrate(const char *path, uint32_t *out_from, mdot_error *err);
/* Reads everything: pages, indices, and the checksum of each record.
 *
 * @errors CORRUPT names the first fault; IO; OUT_OF_MEMORY
 */
mdot_status mdot_store_check(mdot_store *store, mdot_error *err);

/* Counts of a recovery. */
typedef struct mdot_store_recovery {
    size_t struct_size;
    uint64_t row_count, job_count, outcome_count; /* saved records */
    uint64_t scanned_count;                       /* those found only by a search of all pages */
    uint64_t damaged_count;                       /* records whose checksum differs; they are left out */
} mdot_store_recovery;

/* Copies every readable record from a damaged store into a new store at `new_path`, which must be absent. It follows
 * the tables first, and then searches all pages in the file and the write-ahead log for records. A record counts only
 * if its checksum is right.
 *
 * @param path the damaged store's file name
 * @param new_path the new store's file name; it must be absent
 * @param out_recovery receives counts of saved records
 * @errors INVALID_ARGUMENT if new_path exists; NOT_FOUND; MALFORMED; IO; CORRUPT; OUT_OF_MEMORY
 * @threads any */
mdot_status mdot_store_recover(const char *path, const char *new_path, mdot_store_recovery *out_recovery,
                               mdot_error *err);

/* Frees a text or bytes from a function in this library.
 *
 * @param memory NULL is accepted
 * @threads any */
void mdot_store_free(void *memory);

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

enum {
    MDOT_STORE_DIGEST_BYTES = 33 /* 32 hexadecimal digits and a NUL */
};

/* Computes a job's digest from the operators: types (256 letters each), attributes, FLOPs, bytes and connections. It
 * leaves out the file's batch, module names, and everything that a configuration selects.
 *
 * @param out_digest receives 32 hexadecimal digits and a NUL
 * @errors INVALID_ARGUMENT for NULL; OUT_OF_MEMORY */
mdot_status mdot_store_digest(const mdot_job *job, char out_digest[MDOT_STORE_DIGEST_BYTES], mdot_error *err);

/* A job of the store. */
typedef struct mdot_store_job {
    size_t struct_size;
    const char *digest;     /* 32 hexadecimal digits */
    const char *name;       /* the file it was read from, or another name for people */
    int64_t operator_count; /* number of operators */
    double parameters;      /* elements that training updates */
    int64_t added_at;       /* when the store got it, in seconds since 1970 */
    uint64_t size_bytes;    /* size as a `.job` file */
    uint64_t row_count;     /* measured rows of the job */
} mdot_store_job;

/* Called for each job; returns false to stop. */
typedef bool (*mdot_store_visit_job)(void *user, const mdot_store_job *job);
/* Visits the jobs of the store.
 *
 * @param visit called for each job; returns false to stop
 * @param user passed to `visit`
 * @errors IO; CORRUPT; OUT_OF_MEMORY
 */
mdot_status mdot_store_visit_jobs(mdot_store *store, mdot_store_visit_job visit, void *user, mdot_error *err);
/* Adds a job, and fills the digest. A known job is kept; between two forms, the longer file stays, because it has a
 * program or names besides.
 *
 * @param name the job's name for people; NULL counts as ""
 * @param out_digest receives 32 hexadecimal digits and a NUL
 * @errors IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_add_job(mdot_store *store, const mdot_job *job, const char *name,
                               char out_digest[MDOT_STORE_DIGEST_BYTES], mdot_error *err);
/* Returns the bytes of a job's `.job` file, for mdot_job_parse.
 *
 * @param digest 32 hexadecimal digits
 * @param out_bytes receives the bytes
 * @param out_size_bytes receives the size
 * @errors NOT_FOUND for a digest without a job; IO; CORRUPT; OUT_OF_MEMORY
 * @owner Free *out_bytes with mdot_store_free. */
mdot_status mdot_store_get_job(mdot_store *store, const char *digest, void **out_bytes, size_t *out_size_bytes,
                               mdot_error *err);

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* A measured step. The fields correspond to columns in the table for `mdot calibrate`. */
typedef struct mdot_store_row {
    size_t struct_size;
    int64_t id;         /* number of the row in this store; ignored in a row to be added */
    uint64_t uid;       /* identity of the measurement in all stores; 0 in a row to be added selects a new one */
    const char *digest; /* the job's digest */
    const char *job;    /* the job's file, as the table names it */
    const char *name;   /* name of the job in the store. Ignored in a row to be added */
    const char *gpu;    /* the name that the measurement gave */
    /* the GPU model's name in mdot's table, or `gpu` if mdot does not know it. Ignored in a row to be added */
    const char *gpu_name;
    int64_t batch;         /* samples per pass and worker, 1 to 2^24 */
    double ms;             /* measured time of a step in milliseconds, above 0 */
    double memory_gib;     /* measured peak memory in GiB; 0: unknown */
    const char *settings;  /* the other columns, one line "name=value" for each, sorted by name */
    const char *software;  /* for example "torch 2.4.1, CUDA 12.4, driver 550.54" */
    const char *host;      /* name of the machine */
    const char *predictor; /* predictor and version in use when the job ran */
    const char *note;      /* any text of one line */
    int64_t measured_at;   /* when it was measured, in seconds since 1970; 0: unknown */
    /* weight in the row's group, 0 to 1; below MDOT_STORE_OUTLIER_WEIGHT: an outlier. 0 before mdot_store_refresh has
     * seen it. Ignored in a row to be added */
    double weight;
} mdot_store_row;

/* Adds rows in one transaction. A row with a known uid is left out.
 *
 * @param rows the measured steps
 * @param count number of rows
 * @param out_added receives the number of new rows; may be NULL
 * @errors INVALID_ARGUMENT names an invalid row; NOT_FOUND a digest without a job; IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_add_rows(mdot_store *store, const mdot_store_row *rows, size_t count, size_t *out_added,
                                mdot_error *err);

typedef struct mdot_store_filter { /* zero selects all rows */
    size_t struct_size;
    const char *gpu;      /* the GPU's name, in any spelling that mdot_gpu_find reads; NULL: any */
    const char *digest;   /* the first digits of the digest; NULL: any */
    const char *software; /* NULL: any */
    int64_t since;        /* measured at this time or later */
    int64_t after_id;     /* rows with greater ids only */
    double below_weight;  /* rows with smaller weights only; 0: all rows */
} mdot_store_filter;

/* Called for each row; returns false to stop. */
typedef bool (*mdot_store_visit_row)(void *user, const mdot_store_row *row);
/* Visits rows, ordered by id.
 *
 * @param filter NULL selects all rows
 * @param visit called for each row; returns false to stop
 * @param user passed to `visit`
 * @errors CORRUPT for a row with a wrong checksum; IO; OUT_OF_MEMORY */
mdot_status mdot_store_visit_rows(mdot_store *store, const mdot_store_filter *filter, mdot_store_visit_row visit,
                                  void *user, mdot_error *err);

/* Counts of an import. */
typedef struct mdot_store_import {
    size_t struct_size;
    size_t added_count;     /* new records */
    size_t updated_count;   /* outcomes that the store had in an earlier state */
    size_t known_count;     /* records that the store had already */
    size_t step_count;      /* Slurm's lines other than jobs: steps, and waiting tasks of an array */
    size_t malformed_count; /* lines that were left out */
} mdot_store_import;

/* Imports a table of measured steps in one transaction: CSV with the columns of `mdot calibrate`, and also row, name,
 * digest, gib, software, host, predictor and measured_at, as mdot_store_export_csv writes them. A row without a number
 * in the column `row` is identified by content: a table may be imported again after it has grown. A faulty line fails
 * the whole import, with its number.
 *
 * @param text the table in UTF-8
 * @param size_bytes bytes in `text`
 * @param name replaces the file name in messages
 * @param jobs jobs[i] is the i-th row's job, which the store adds if it is new. NULL: the column digest selects the
 *     store's jobs
 * @param job_count number of jobs: the number of rows, or 0
 * @param out_import receives record counts
 * @errors MALFORMED or INVALID_ARGUMENT for a faulty line; NOT_FOUND for a digest without a job; IO; CORRUPT;
 *     OUT_OF_MEMORY */
mdot_status mdot_store_import_csv(mdot_store *store, const char *text, size_t size_bytes, const char *name,
                                  const mdot_job *const *jobs, size_t job_count, mdot_store_import *out_import,
                                  mdot_error *err);

enum {
    MDOT_STORE_EXPORT_PLAIN = 1u << 0, /* only the columns that `mdot calibrate` uses, and the note */
    /* plain, with a row for each group and robust mean, for a calibration. It requires job_folder. The order is that of
     * mdot_store_visit_groups */
    MDOT_STORE_EXPORT_GROUPS = 1u << 1,
};

/* Rows and columns of an export. */
typedef struct mdot_store_export {
    size_t struct_size;
    uint32_t flags;                  /* MDOT_STORE_EXPORT_… */
    uint32_t reserved;               /* must be 0 */
    const mdot_store_filter *filter; /* NULL: all rows. Groups take its gpu, digest and software */
    /* the column job names DIGEST.job in this folder, and options for reading the job are left out, because the file
     * contains the effect. NULL: the job as the row names it */
    const char *job_folder;
    const char *unpredicted_by; /* only groups that lack a prediction by this predictor; NULL: all */
} mdot_store_export;

/* Writes a table as text. An import into an empty store, and an export from there, give the same bytes.
 *
 * @param options NULL selects all rows and columns
 * @param out_text receives the table in UTF-8
 * @param out_size_bytes receives the number of bytes
 * @errors INVALID_ARGUMENT for an invalid option; IO; CORRUPT; OUT_OF_MEMORY
 * @owner Free *out_text with mdot_store_free. */
mdot_status mdot_store_export_csv(mdot_store *store, const mdot_store_export *options, char **out_text,
                                  size_t *out_size_bytes, mdot_error *err);

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

/* How an execution ended. docs/reference/formats/store.md lists Slurm's states of each outcome. */
typedef enum mdot_outcome {
    MDOT_OUTCOME_UNFINISHED, /* pending, running or suspended */
    MDOT_OUTCOME_COMPLETED,  /* ended by itself with exit status 0 */
    MDOT_OUTCOME_FAILED,     /* ended with an error in the program, the node or memory */
    MDOT_OUTCOME_CANCELLED,  /* ended by a person, a preemption or a revocation */
    MDOT_OUTCOME_TIMED_OUT   /* ended at its time limit or deadline */
} mdot_outcome;

/* Returns the name of an outcome.
 *
 * @param outcome any number
 * @return for example "completed"; NULL for an unknown value; static
 */
const char *mdot_outcome_name(mdot_outcome outcome);

/* One execution of a job. Slurm's times are on the cluster's clock, as if its zone were UTC. */
typedef struct mdot_store_outcome {
    size_t struct_size;
    int64_t id;            /* number in this store; ignored in an outcome to be added */
    const char *cluster;   /* name of the cluster. Cluster, job_id and submitted_at identify an execution */
    const char *job_id;    /* "1234", or "1234_7" for a task of a job array */
    int64_t submitted_at;  /* when it was submitted or requeued, in seconds since 1970 */
    const char *name;      /* name of the job */
    const char *user;      /* user who submitted it */
    const char *account;   /* account that pays for it */
    const char *partition; /* partition of the cluster */
    const char *state;     /* the scheduler's own word, for example "OUT_OF_MEMORY" */
    const char *digest;    /* the network's digest, if known */
    const char *gpu;       /* the GPU type in the scheduler */
    int64_t gpu_count;     /* allocated GPUs, or requested ones if none were allocated */
    int64_t node_count;    /* allocated nodes; 0: unknown */
    int64_t started_at;    /* when it started, in seconds since 1970; 0: it has not, or unknown */
    int64_t ended_at;      /* when it ended, in seconds since 1970; 0: it has not, or unknown */
    int64_t elapsed_s;     /* run time in seconds; -1: unknown */
    int64_t limit_s;       /* time limit in seconds; 0: unknown, -1: unlimited */
    int64_t exit_code;     /* -1: unknown */
    mdot_outcome outcome;  /* outcome that `state` means */
    uint32_t reserved;     /* must be 0 */
} mdot_store_outcome;

/* Adds outcomes in one transaction. A known outcome is updated, unless this would replace a finished one with an
 * unfinished one.
 *
 * @param outcomes the executions
 * @param count number of outcomes
 * @param out_import receives record counts
 * @errors INVALID_ARGUMENT names an invalid outcome; IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_add_outcomes(mdot_store *store, const mdot_store_outcome *outcomes, size_t count,
                                    mdot_store_import *out_import, mdot_error *err);
/* Called for each outcome; returns false to stop. */
typedef bool (*mdot_store_visit_outcome)(void *user, const mdot_store_outcome *outcome);
/* Visits the outcomes of the store.
 *
 * @param visit called for each outcome; returns false to stop
 * @param user passed to `visit`
 * @errors CORRUPT for an outcome whose checksum differs; IO; OUT_OF_MEMORY
 */
mdot_status mdot_store_visit_outcomes(mdot_store *store, mdot_store_visit_outcome visit, void *user, mdot_error *err);

/* Options for an import of Slurm's accounting. */
typedef struct mdot_store_accounting {
    size_t struct_size;
    const char *name;    /* name of the text in messages */
    const char *cluster; /* name of the cluster where the text lacks it; NULL: "" */
    void (*malformed)(void *user, size_t line, const char *reason); /* called for each malformed line; may be NULL */
    void *user;
} mdot_store_accounting;

/* Imports Slurm's accounting, the output of `sacct --parsable2` (-P) or `--parsable` (-p), in one transaction. The
 * first line names the fields. JobID and State are required; docs/reference/formats/store.md lists all others.
 * Malformed lines are reported and left out.
 *
 * @param text sacct's output, in UTF-8
 * @param size_bytes bytes in `text`
 * @param options NULL selects all defaults
 * @param out_import receives record counts
 * @errors MALFORMED for a first line without JobID or State; IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_import_sacct(mdot_store *store, const char *text, size_t size_bytes,
                                    const mdot_store_accounting *options, mdot_store_import *out_import,
                                    mdot_error *err);

/* ---- Groups: repeated measurements ------------------------------------------------------------------------------- */

#define MDOT_STORE_OUTLIER_WEIGHT 0.25 /* a row with a smaller weight is an outlier */
/* Rows outside these bounds are absurd: they get the weight 0, and count nowhere. */
#define MDOT_STORE_SHORTEST_MS 1e-4 /* 0.1 microseconds */
#define MDOT_STORE_LONGEST_MS 1e9   /* 11.6 days */
#define MDOT_STORE_MOST_GIB 1e5

/* Rows with one job, GPU model, batch, settings and software. The logarithms follow a Student t distribution with four
 * degrees of freedom, which gives distant rows small weights: for example, those from a throttled or shared GPU. */
typedef struct mdot_store_group {
    size_t struct_size;
    int64_t id;                              /* number of the group in this store */
    const char *digest;                      /* the job's digest */
    const char *job;                         /* name of the job in the store */
    const char *gpu_name;                    /* the GPU model's name in mdot's table */
    const char *settings;                    /* mdot_store_row.settings */
    const char *software;                    /* mdot_store_row.software */
    int64_t batch;                           /* the rows' batch */
    uint64_t row_count;                      /* number of rows */
    uint64_t outlier_count;                  /* rows with a weight below MDOT_STORE_OUTLIER_WEIGHT */
    double ms;                               /* robust geometric mean of a step in milliseconds */
    double spread;                           /* standard deviation of a row's logarithm */
    double memory_gib;                       /* largest measured peak in GiB; 0: unknown */
    int64_t first_at;                        /* the first row's time, in seconds since 1970 */
    int64_t last_at;                         /* the last row's time, in seconds since 1970 */
    double predicted_ms, lower_ms, upper_ms; /* predicted median and 90 % interval in milliseconds; 0: not predicted */
} mdot_store_group;

/* Counts of a refresh. */
typedef struct mdot_store_refresh_report {
    size_t struct_size;
    uint64_t new_row_count;       /* rows since the last refresh */
    uint64_t read_row_count;      /* rows read: those in groups with new rows */
    uint64_t changed_group_count; /* groups that got new rows */
    uint64_t group_count;         /* all groups of the store */
} mdot_store_refresh_report;

/* Updates groups and weights. It reads only groups with new rows since the last refresh. Calibrations and drift then
 * need one value for each group, however often a step was measured.
 *
 * @param out_report receives counts of rows and groups
 * @errors IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_refresh(mdot_store *store, mdot_store_refresh_report *out_report, mdot_error *err);

/* Called for each group; returns false to stop. */
typedef bool (*mdot_store_visit_group)(void *user, const mdot_store_group *group);
/* Visits groups, with a predictor's predictions.
 *
 * @param filter NULL selects all groups; gpu, digest and software count
 * @param predictor the name in mdot_store_set_predictions; NULL: without predictions
 * @param visit called for each group; returns false to stop
 * @param user passed to `visit`
 * @errors IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_visit_groups(mdot_store *store, const mdot_store_filter *filter, const char *predictor,
                                    mdot_store_visit_group visit, void *user, mdot_error *err);

/* A prediction for a group. */
typedef struct mdot_store_prediction {
    size_t struct_size;
    int64_t group;   /* id of a group */
    double ms;       /* predicted median in milliseconds, above 0 */
    double lower_ms; /* lower bound of the 90 % interval in milliseconds */
    double upper_ms; /* upper bound of the 90 % interval in milliseconds */
} mdot_store_prediction;

/* Stores a predictor's predictions for groups.
 *
 * @param predictor a unique name from the caller, with version and calibration
 * @param predictions one for each group; times are in milliseconds
 * @param count number of predictions
 * @errors INVALID_ARGUMENT for an invalid prediction; IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_set_predictions(mdot_store *store, const char *predictor,
                                       const mdot_store_prediction *predictions, size_t count, mdot_error *err);

/* ---- Drift ------------------------------------------------------------------------------------------------------- */

/* Comparison of measurements with predictions for one GPU model and one software version, by three tests. Each has a
 * statistic, and a p-value corrected for the number of tests (Holm). A p-value of 1 and a count of 0 mean too few rows.
 *
 *   level     this predictor's predictions are right within their intervals. Each job counts once, because the errors
 *             in its rows belong together
 *   change    steps took equally long at all times: the largest sum of deviations from the group's mean, up to any
 *             moment, against 999 random orders within the groups
 *   software  steps took as long as with the previous software version: differences between equal groups, averaged for
 *             each job, by Student's t test from three jobs on, otherwise against the spread of the rows */
typedef struct mdot_store_drift {
    size_t struct_size;
    const char *gpu_name;                       /* the GPU model's name in mdot's table */
    const char *software;                       /* software version: the column `software`, or else PyTorch's version */
    uint64_t row_count, group_count, job_count; /* with predictions */
    double ratio;                               /* measured over predicted, geometric mean over jobs */
    double level_z, level_p;                    /* normal statistic */
    uint64_t dated_row_count;                   /* rows with a date in groups of two or more */
    int64_t changed_at;                         /* first row after the change */
    double change_ratio;                        /* times after over times before */
    double change_statistic;                    /* largest sum of deviations, above 0 if there was a test */
    double change_p;                            /* p-value of the test for a change, 0 to 1 */
    const char *previous_software;              /* version that was first measured before this one; "": none */
    uint64_t pair_count;                        /* pairs of equal groups with both versions */
    double software_ratio;                      /* times with this software over the previous one */
    double software_t;                          /* statistic of the software test */
    double software_p;                          /* its p-value, 0 to 1 */
} mdot_store_drift;

/* Called for each GPU model and software version; returns false to stop. */
typedef bool (*mdot_store_visit_drift)(void *user, const mdot_store_drift *drift);
/* Compares all groups with a predictor's predictions. Refresh first. Software versions are ordered by the first
 * measurement.
 *
 * @param predictor the name in mdot_store_set_predictions
 * @param visit called for each GPU model and software version; returns false to stop
 * @param user passed to `visit`
 * @errors IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_find_drift(mdot_store *store, const char *predictor, mdot_store_visit_drift visit, void *user,
                                  mdot_error *err);

/* ---- Hosts ------------------------------------------------------------------------------------------------------- */

/* A host's steps compared with those of equal groups on other hosts with the same GPU model. */
typedef struct mdot_store_host {
    size_t struct_size;
    const char *host, *gpu_name;     /* the GPU model's name in mdot's table */
    uint64_t row_count, group_count; /* rows in groups that other hosts have, too */
    double ratio;                    /* the host's times over the other hosts' median, geometric mean over groups */
    double p;                        /* p-value for a ratio of 1, corrected for the number of hosts (Holm) */
} mdot_store_host;

/* Called for each host and GPU model; returns false to stop. */
typedef bool (*mdot_store_visit_host)(void *user, const mdot_store_host *host);
/* Compares hosts, by the rows with a host's name. Refresh first.
 *
 * @param visit called for each host and GPU model; returns false to stop
 * @param user passed to `visit`
 * @errors IO; CORRUPT; OUT_OF_MEMORY */
mdot_status mdot_store_find_hosts(mdot_store *store, mdot_store_visit_host visit, void *user, mdot_error *err);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
