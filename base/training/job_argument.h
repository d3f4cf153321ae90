/* job_argument.h — a training job and a predictor as arguments of a command: how they are read and found. */
#pragma once

#include "base/command/command.h"
#include "mdot/mdot.h"

enum { CLI_MAX_BATCH = 1 << 24 };

/* Options for reading a job, from the command line. All zero: defaults. */
typedef struct cli_reading {
    cli_dims dims;
    cli_texts frozen, trained; /* module patterns: mdot_job_freezing */
    const char *lora;          /* adapters, for example "r=16,targets=q_proj,v_proj"; may be NULL */
    bool quiet, keep_names;
    const char *output; /* file that the command will write; may be NULL */
} cli_reading;

/* Reads a job as mdot_job_read does, or from stdin ("-"), for `command`. The first twenty warnings go to stderr unless
 * `quiet` is set. INVALID_ARGUMENT for dimensions that the job lacks, and if `output` is an input of the job or cannot
 * be written. Module names in a model are kept on request; a .job file has the names from the extraction. */
mdot_status cli_read_job(const char *command, const char *path, const cli_reading *reading, mdot_job **out_job,
                         mdot_error *err);

#define CLI_LORA_OPTION(request, member)                                                                               \
    {                                                                                                                  \
        .name = "lora", .value = "r=N,targets=…",                                                                      \
        .help = "train only adapters beside these linear layers, for example r=16,targets=q_proj,v_proj (default: "    \
                "all-linear)",                                                                                         \
        .kind = CLI_TEXT, .at = offsetof(request, member.lora)                                                         \
    }

/* Option rows for a cli_reading at `member` in `request`. */
#define CLI_READING_OPTIONS(request, member)                                                                           \
    CLI_DIM_OPTION(request, member.dims, 1, "fix a symbolic dimension other than the batch (or NAME=OTHER)"),          \
        CLI_SAMPLE_LENGTH_OPTION(request, member.dims),                                                                \
        {.name = "frozen",                                                                                             \
         .value = "MODULE",                                                                                            \
         .help = "freeze the parameters of this module and its submodules; * and ? are wildcards. A .job file needs "  \
                 "--keep-names",                                                                                       \
         .kind = CLI_TEXTS,                                                                                            \
         .at = offsetof(request, member.frozen),                                                                       \
         .repeats = true},                                                                                             \
        CLI_LORA_OPTION(request, member),                                                                              \
    {                                                                                                                  \
        .name = "trained", .value = "MODULE",                                                                          \
        .help = "train the parameters of this module, also inside a frozen one; without --frozen, all others are "     \
                "frozen (LoRA: --trained '*.lora_?')",                                                                 \
        .kind = CLI_TEXTS, .at = offsetof(request, member.trained), .repeats = true                                    \
    }

/* Returns the tokens of a sample in a language model, which looks tokens up and attends to them; 0 for other jobs. */
double cli_tokens_per_sample(const mdot_job *job, const mdot_job_info *info);

/* Whether any operator moves bytes. A job whose tensors are all empty has no time to predict. */
bool cli_has_work(const mdot_job *job, const mdot_job_info *info);

/* Returns the batch of the job's file; 1 if the file leaves it open. */
int64_t cli_job_batch(const mdot_job_info *info);

/* ---- The predictor ---------------------------------------------------------------------------------------------- */

/* Finds the default predictor: the path in MDOT_PREDICTOR, or ../share/mdot/predictor.mdot relative to the folder of
 * this executable, which is right in a build tree and for any installation. NOT_FOUND if it is absent. The caller
 * frees the path. */
mdot_status predict_find_default(char **out_path, mdot_error *err);

/* Opens the predictor at `path`, or the default one if it is NULL. The caller destroys both results, also after a
 * failure. `output` is the file that the command will write; INVALID_ARGUMENT if it is the predictor. It may be
 * NULL. */
mdot_status predict_open_model(const char *path, const char *output, mdot_predictor **out_predictor,
                               mdot_context **out_context, mdot_error *err);
/* Rows of an option table for the arguments `path` of predict_open_model and predict_load_calibration, which are
 * members of `request`. */
#define PREDICT_MODEL_OPTION(request, path, HEADING, HELP)                                                             \
    {                                                                                                                  \
        .heading = HEADING, .name = "model", .letter = 'm', .value = "FILE", .help = HELP, .kind = CLI_TEXT,           \
        .at = offsetof(request, path), .files = "mdot"                                                                 \
    }
#define PREDICT_CALIBRATION_OPTION(request, path)                                                                      \
    {                                                                                                                  \
        .name = "calibration", .letter = 'c', .value = "FILE.cal",                                                     \
        .help = "apply a calibration that `mdot calibrate` made", .kind = CLI_TEXT, .at = offsetof(request, path),     \
        .files = "cal"                                                                                                 \
    }

/* Loads a calibration, which must have been made with the predictor of this name. The caller destroys it, also after
 * a failure. */
mdot_status predict_load_calibration(const char *path, const char *predictor, mdot_calibration **out_calibration,
                                     mdot_error *err);
