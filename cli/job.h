/* job.h — what the subcommands that take a training job share: reading it, and the words for how it trains. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "cli/cli.h"

enum { CLI_MAX_BATCH = 1 << 24 };

/* Reads JOB.onnx, or JOB.job by its suffix, for `command`. Warnings go to stderr unless quiet, the first twenty of
 * them. INVALID_ARGUMENT for dimensions that a .job file does not have any more, and where `output` (NULL: none), which
 * the command will write, is one of the files that the job is read from or none that can be written. Names of modules
 * are kept from a model where asked for; a .job file has what it was made with. */
mdot_status cli_read_job(const char *command, const char *path, const cli_dims *dims, bool quiet, bool keep_names,
                         const char *output, mdot_job **out_job, mdot_error *err);

/* The batch that the job's file was made for, 1 where it does not say. */
int64_t cli_job_batch(const mdot_job_info *info);

/* "sgd", "adam", "adamw", in the order of mdot_optimizer, ending with NULL. */
enum { CLI_OPTIMIZER_COUNT = MDOT_OPTIMIZER_ADAMW + 1 };
extern const char *const cli_optimizer_names[CLI_OPTIMIZER_COUNT + 1];

#endif
