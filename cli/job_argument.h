/* job_argument.h — helpers of the subcommands that take a training job: reading it, and the names of training
 * options. */
#ifndef CLI_JOB_ARGUMENT_H
#define CLI_JOB_ARGUMENT_H

#include "cli/command.h"

enum { CLI_MAX_BATCH = 1 << 24 };

/* Options for reading a job, from the command line. All zero: defaults. */
typedef struct cli_reading {
    cli_dims dims;
    cli_texts frozen, trained; /* module patterns: mdot_job_freezing */
    bool quiet, keep_names;
    const char *output; /* file that the command will write; may be NULL */
} cli_reading;

/* Reads JOB.onnx, or JOB.job according to its suffix, for `command`. The first twenty warnings go to stderr unless
 * `quiet` is set. INVALID_ARGUMENT for dimensions that a .job file has lost, and if `output` is one of the files that
 * the job is read from, or cannot be written. Module names of a model are kept on request; a .job file has the names
 * that it was made with. */
mdot_status cli_read_job(const char *command, const char *path, const cli_reading *reading, mdot_job **out_job,
                         mdot_error *err);

/* Rows of an option table for a cli_reading at `member` of `request`. */
#define CLI_READING_OPTIONS(request, member)                                                                           \
    CLI_DIM_OPTION(request, member.dims, 1, "fix a symbolic dimension other than the batch (or NAME=OTHER)"),          \
        {.name = "frozen",                                                                                             \
         .value = "MODULE",                                                                                            \
         .help = "freeze the parameters of this module and of the modules in it; * and ? are wildcards. A .job file "  \
                 "requires "                                                                                           \
                 "that it was made with --keep-names",                                                                 \
         .kind = CLI_TEXTS,                                                                                            \
         .at = offsetof(request, member.frozen),                                                                       \
         .repeats = true},                                                                                             \
    {                                                                                                                  \
        .name = "trained", .value = "MODULE",                                                                          \
        .help = "train the parameters of this module, also inside a frozen one; without --frozen, all others are "     \
                "frozen (LoRA: --trained '*.lora_?')",                                                                 \
        .kind = CLI_TEXTS, .at = offsetof(request, member.trained), .repeats = true                                    \
    }

/* Returns the batch of the job's file; 1 if the file leaves it open. */
int64_t cli_job_batch(const mdot_job_info *info);

#endif
