/* job_argument.h — what the subcommands that take a training job share: reading it, and the words for how it trains. */
#ifndef CLI_JOB_ARGUMENT_H
#define CLI_JOB_ARGUMENT_H

#include "cli/command.h"

enum { CLI_MAX_BATCH = 1 << 24 };

/* How a job is read: what the options of a subcommand say. Zero: nothing. */
typedef struct cli_reading {
    cli_dims dims;
    cli_texts frozen, trained; /* patterns of modules: mdot_job_freezing */
    bool quiet, keep_names;
    const char *output; /* what the command will write; NULL: nothing */
} cli_reading;

/* Reads JOB.onnx, or JOB.job by its suffix, for `command`. Warnings go to stderr unless quiet, the first twenty of
 * them. INVALID_ARGUMENT for dimensions that a .job file does not have any more, and where `output` is one of the
 * files that the job is read from or none that can be written. Names of modules are kept from a model where asked
 * for; a .job file has what it was made with. */
mdot_status cli_read_job(const char *command, const char *path, const cli_reading *reading, mdot_job **out_job,
                         mdot_error *err);

/* Rows of a table of options for a cli_reading at `member` of `request`. */
#define CLI_READING_OPTIONS(request, member)                                                                           \
    {.name = "dim",                                                                                                    \
     .letter = 'd',                                                                                                    \
     .value = "NAME=N",                                                                                                \
     .help = "fix a symbolic dimension other than the batch (or NAME=OTHER)",                                          \
     .kind = CLI_DIM,                                                                                                  \
     .at = offsetof(request, member.dims),                                                                             \
     .least = 1,                                                                                                       \
     .repeats = true},                                                                                                 \
        {.name = "frozen",                                                                                             \
         .value = "MODULE",                                                                                            \
         .help = "training leaves the parameters of this module as they are, and of those in it; * and ? stand for "   \
                 "letters. A .job file needs to have been made with --keep-names",                                     \
         .kind = CLI_TEXTS,                                                                                            \
         .at = offsetof(request, member.frozen),                                                                       \
         .repeats = true},                                                                                             \
    {                                                                                                                  \
        .name = "trained", .value = "MODULE",                                                                          \
        .help = "but not this one; without --frozen, all others are frozen (LoRA: --trained '*.lora_?')",              \
        .kind = CLI_TEXTS, .at = offsetof(request, member.trained), .repeats = true                                    \
    }

/* The batch that the job's file was made for, 1 where it does not say. */
int64_t cli_job_batch(const mdot_job_info *info);

/* "sgd", "adam", "adamw", in the order of mdot_optimizer, ending with NULL. */
enum { CLI_OPTIMIZER_COUNT = MDOT_OPTIMIZER_ADAMW + 1 };
extern const char *const cli_optimizer_names[CLI_OPTIMIZER_COUNT + 1];

#endif
