/* training_options.h — training options on the command line: they become an mdot_configuration, and a configuration is
 * described in words. The subcommands that predict share them. */
#ifndef CLI_TRAINING_OPTIONS_H
#define CLI_TRAINING_OPTIONS_H

#include "cli/command.h"
#include "cli/job_argument.h"

enum { CLI_MAX_VERSIONS = 16 };

/* Defaults are CLI_NO_CHOICE, 0 and false, as set by cli_training_begin. */
typedef struct cli_training {
    int precision, layout, optimizer, attention, recompute;
    bool compiled;
    int64_t accumulate;
    int64_t gpu_count, node_count; /* number of GPUs that work on a step, and of their nodes */
    mdot_link link;
    double link_gbps, network_gbps;
    uint32_t data_parallel, tensor_parallel, pipeline_parallel, expert_parallel, micro_batches, zero_stage;
    uint32_t torch[CLI_MAX_VERSIONS]; /* 100 * major + minor */
    size_t torch_count;               /* number of versions; each gets its own prediction */
} cli_training;

enum {
    CLI_PRECISION_COUNT = MDOT_PRECISION_PYTORCH + 1,
    CLI_LAYOUT_COUNT = MDOT_LAYOUT_NHWC + 1,
    CLI_ATTENTION_COUNT = MDOT_ATTENTION_EAGER + 1,
    CLI_RECOMPUTE_COUNT = MDOT_RECOMPUTE_SELECTIVE + 1
};
/* In the order of the enums, terminated by NULL. */
extern const char *const cli_precision_names[CLI_PRECISION_COUNT + 1];
extern const char *const cli_layout_names[CLI_LAYOUT_COUNT + 1];
extern const char *const cli_attention_names[CLI_ATTENTION_COUNT + 1];
extern const char *const cli_recompute_names[CLI_RECOMPUTE_COUNT + 1];
/* Names of PyTorch, and of the libraries built on it, for the same choices. */
extern const cli_word cli_precision_words[], cli_layout_words[], cli_optimizer_words[], cli_attention_words[],
    cli_recompute_words[];

void cli_training_begin(cli_training *training);
/* Completes a configuration that has its GPU and batch: from the command line, else from the job. Of several versions
 * of PyTorch it takes the first. */
void cli_training_apply(const cli_training *training, const mdot_job_info *job, mdot_configuration *configuration);
/* Number of GPUs that work on a step, and number of samples in a step. */
int cli_gpu_count(const mdot_configuration *configuration);
double cli_samples_of_step(const mdot_configuration *configuration);

/* Describes the configuration for people: "pytorch (default), nchw (default), …, 8 GPUs". It marks defaults.
 * `attends`: the job has attention. `is_estimated`: part of the answer is an analytic estimate (MDOT_WARN_ANALYTIC_ESTIMATE). */
typedef struct cli_sentence {
    char text[640];
} cli_sentence;
const char *cli_describe_training(cli_sentence *out, const cli_training *training, const mdot_configuration *c,
                                  const mdot_job_info *job, bool attends, bool is_estimated);
/* Prints the configuration as members of a JSON object, each behind a comma and a blank. */
void cli_json_training(FILE *stream, const mdot_configuration *c);

/* Returns the warnings to print. The reasons why an answer is outside of the measured data replace the general
 * warning that it is outside. */
uint32_t cli_said_warnings(const mdot_prediction *prediction);

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* These calls expect the cli_training at the start of the request. */
bool cli_parse_link(const char *command, char *text, void *training);
bool cli_parse_parallel(const char *command, char *text, void *training);
bool cli_parse_torch(const char *command, char *text, void *training);

/* Rows of an option table, in two parts: how the job trains, and where. */
#define CLI_TRAINING_OPTIONS                                                                                           \
    {.heading = "How it trains",                                                                                       \
     .name = "precision",                                                                                              \
     .value = "P",                                                                                                     \
     .help = "fp32, tf32, amp-fp16 (or amp), amp-bf16, bf16: weights, too; or pytorch, the default: fp32, and tf32 "   \
             "in convolutions from Ampere on",                                                                         \
     .kind = CLI_CHOICE,                                                                                               \
     .at = offsetof(cli_training, precision),                                                                          \
     .choices = cli_precision_names,                                                                                   \
     .words = cli_precision_words},                                                                                    \
        {.name = "layout",                                                                                             \
         .value = "L",                                                                                                 \
         .help = "of images in memory: nchw, nhwc (default nchw)",                                                     \
         .kind = CLI_CHOICE,                                                                                           \
         .at = offsetof(cli_training, layout),                                                                         \
         .choices = cli_layout_names,                                                                                  \
         .words = cli_layout_words},                                                                                   \
        {.name = "optimizer",                                                                                          \
         .value = "O",                                                                                                 \
         .help = "sgd, adam, adamw (default: the file's, or sgd)",                                                     \
         .kind = CLI_CHOICE,                                                                                           \
         .at = offsetof(cli_training, optimizer),                                                                      \
         .choices = cli_optimizer_names,                                                                               \
         .words = cli_optimizer_words},                                                                                \
        {.name = "attention",                                                                                          \
         .value = "A",                                                                                                 \
         .help = "flash: fused, its scores never written; eager: written out (default flash)",                         \
         .kind = CLI_CHOICE,                                                                                           \
         .at = offsetof(cli_training, attention),                                                                      \
         .choices = cli_attention_names,                                                                               \
         .words = cli_attention_words},                                                                                \
        {.name = "compile",                                                                                            \
         .help = "by torch.compile, which fuses what is no product",                                                   \
         .kind = CLI_FLAG,                                                                                             \
         .at = offsetof(cli_training, compiled)},                                                                      \
        {.name = "checkpoint",                                                                                         \
         .value = "WHAT",                                                                                              \
         .help = "compute again in the backward pass: blocks, all of each (the default of this option); selective, "   \
                 "all but products",                                                                                   \
         .kind = CLI_CHOICE,                                                                                           \
         .at = offsetof(cli_training, recompute),                                                                      \
         .choices = cli_recompute_names,                                                                               \
         .words = cli_recompute_words,                                                                                 \
         .fallback = "blocks"},                                                                                        \
        {.name = "accumulate",                                                                                         \
         .value = "N",                                                                                                 \
         .help = "passes of a batch whose gradients are added up before a step of the optimizer (default 1)",          \
         .kind = CLI_WHOLE,                                                                                            \
         .at = offsetof(cli_training, accumulate),                                                                     \
         .least = 1,                                                                                                   \
         .most = 1 << 16},                                                                                             \
    {                                                                                                                  \
        .name = "torch", .value = "VERSION",                                                                           \
        .help = "of PyTorch, as 1.12 or 2.4, or several, as 1.12,2.4 (default: the newest that the predictor knows)",  \
        .kind = CLI_CALL, .call = cli_parse_torch, .repeats = true                                                     \
    }

#define CLI_CLUSTER_OPTIONS                                                                                            \
    {.heading = "Several of them",                                                                                     \
     .name = "gpus",                                                                                                   \
     .value = "N",                                                                                                     \
     .help = "so many of them share a step, each with its own batch unless --parallel says otherwise (default 1)",     \
     .kind = CLI_WHOLE,                                                                                                \
     .at = offsetof(cli_training, gpu_count),                                                                          \
     .least = 1,                                                                                                       \
     .most = 1 << 16},                                                                                                 \
        {.name = "parallel",                                                                                           \
         .value = "KIND=N,…",                                                                                          \
         .help = "how: dp, tp, pp, ep, the degrees of data, tensor, pipeline and expert parallelism, which multiply "  \
                 "to the GPUs; micro, a pipeline's micro-batches; zero, ZeRO's stage",                                 \
         .kind = CLI_CALL,                                                                                             \
         .call = cli_parse_parallel},                                                                                  \
        {.name = "nodes",                                                                                              \
         .value = "N",                                                                                                 \
         .help = "that they are spread over (default 1)",                                                              \
         .kind = CLI_WHOLE,                                                                                            \
         .at = offsetof(cli_training, node_count),                                                                     \
         .least = 1,                                                                                                   \
         .most = 1 << 16},                                                                                             \
        {.name = "link",                                                                                               \
         .value = "LINK",                                                                                              \
         .help = "between those of a node: pcie, nvlink, or what a collective reaches, in GB/s",                       \
         .kind = CLI_CALL,                                                                                             \
         .call = cli_parse_link},                                                                                      \
    {                                                                                                                  \
        .name = "network", .value = "GB/s",                                                                            \
        .help = "what a collective reaches between nodes, for each GPU (default 20)", .kind = CLI_REAL,                \
        .at = offsetof(cli_training, network_gbps), .most = 1 << 20                                                    \
    }

#endif
