/* training_options.h — training options on the command line: they become an mdot_configuration, and a configuration is
 * described in words. The subcommands that predict share them. */
#pragma once

#include "base/command/command.h"
#include "base/training/job_argument.h"
#include "runtime/job/configuration_table.h"

enum { CLI_MAX_VERSIONS = 16 };

/* An option value. cli_kind selects the member. */
typedef union cli_training_value {
    int64_t whole;
    double real;
    int choice; /* CLI_NO_CHOICE: absent */
    bool flag;
} cli_training_value;

/* The options of configuration.def from a command line, as set by cli_training_begin and by the rows below. */
typedef struct cli_training {
    cli_training_value value[RT_OPTION_COUNT]; /* indexed by RT_OPTION_…; 0 and CLI_NO_CHOICE: absent */
    uint32_t torch[CLI_MAX_VERSIONS];          /* 100 * major + minor */
    bool by_parallel[RT_OPTION_COUNT];         /* set by --parallel, whose next value replaces them */
    size_t torch_count;                        /* number of versions; each gets an own prediction */
} cli_training;

void cli_training_begin(cli_training *training);

/* Whether the command line states option i. */
bool cli_training_states(const cli_training *training, size_t i);

/* Completes a configuration with known GPU and batch from the command line, else from the job. With several PyTorch
 * versions it takes the first. */
void cli_training_apply(const cli_training *training, const mdot_job_info *job, mdot_configuration *configuration);
/* Number of GPUs in a step, and number of samples in a step. */
int cli_gpu_count(const mdot_configuration *configuration);

/* Formats a job's parameters: "25.6M parameters", or "70.6G parameters, 828M of them trained". */
enum { CLI_PARAMETERS_SIZE = 64 };
const char *cli_parameters(const mdot_job_info *job, char out[CLI_PARAMETERS_SIZE]);
double cli_samples_of_step(const mdot_configuration *configuration);

/* Choices by the job and the predictor where the command line leaves them open. */
typedef struct cli_job_choices {
    bool attends;             /* the job has attention */
    bool is_program;          /* the job was traced from a program, which makes the other choices */
    mdot_precision precision; /* of the program */
    mdot_attention attention; /* EAGER or FLASH */
    uint32_t torch;           /* stated by the predictor and filled in by the caller: 100 * major + minor; 0: none */
} cli_job_choices;
cli_job_choices cli_choices_of(const mdot_job *job);

/* Returns where a search for layouts starts if the user chooses nothing: AdamW unless the job states its optimizer, and
 * mixed precision in bf16 for a job with attention, unless the job states its precision or a GPU lacks bf16. */
mdot_configuration cli_plan_base(const mdot_job *job, const mdot_gpu *gpus, size_t gpu_count);

/* Describes the configuration for people: "pytorch (default), nchw (default), …, 8 GPUs". `choices` are the job's.
 * `is_estimated`: part of the answer is an analytic estimate (MDOT_WARN_ANALYTIC_ESTIMATE). */
typedef struct cli_sentence {
    char text[640];
} cli_sentence;
const char *cli_describe_training(cli_sentence *out, const cli_training *training, const mdot_configuration *c,
                                  const mdot_job_info *job, const cli_job_choices *choices, bool is_estimated);
/* Prints the configuration as members of a JSON object, each behind a comma and a blank. */
void cli_json_training(FILE *stream, const mdot_configuration *c);

/* Returns the warnings to print. The specific reasons for leaving the measured data replace the general warning. */
uint32_t cli_shown_warnings(const mdot_prediction *prediction);

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* These calls expect the cli_training at the start of the request. */
bool cli_parse_link(const char *command, char *text, void *training);
bool cli_parse_parallel(const char *command, char *text, void *training);
bool cli_parse_stages(const char *command, char *text, void *training);
bool cli_parse_torch(const char *command, char *text, void *training);

/* Option rows from configuration.def. A subcommand adds them with
 *
 *     #define TRAINING CLI_OPTION_ROW
 *     #include "runtime/job/configuration.def"
 *
 * which has the options on how the job trains. CLUSTER and GROUP (CLI_GROUP_ROW) have the options on several GPUs. */
#define CLI_OPTION_ROW(FIELD, KIND, LEAST, MOST, FALLBACK, DEFAULT, COMMAND, BARE, VALUE, JSON, SLURM, PYTHON, HELP,   \
                       ...)                                                                                            \
    {.heading = CLI_HEADING(RT_OPTION_##FIELD),                                                                        \
     .name = COMMAND,                                                                                                  \
     .value = VALUE,                                                                                                   \
     .help = HELP,                                                                                                     \
     .fallback = BARE,                                                                                                 \
     CLI_ROW_##KIND(FIELD, LEAST, MOST)},
#define CLI_GROUP_ROW(SECTION, NAME, VALUE, HELP)                                                                      \
    {.name = #NAME, .value = VALUE, .help = HELP, .kind = CLI_CALL, .call = cli_parse_##NAME, CLI_LISTS_##NAME},
#define CLI_LISTS_parallel .takes_list = true
#define CLI_LISTS_link .takes_list = true
#define CLI_LISTS_stages .takes_list = false /* the value itself is a list */

#define CLI_HEADING(option)                                                                                            \
    ((option) == RT_OPTION_precision ? "Training" : (option) == RT_OPTION_gpu_count ? "Several GPUs" : NULL)
#define CLI_ROW_AT(field) .at = offsetof(cli_training, value[RT_OPTION_##field])
#define CLI_ROW_COUNT(field, first, last)                                                                              \
    .kind = CLI_WHOLE, CLI_ROW_AT(field), .least = (first), .most = (last), .takes_list = true
#define CLI_ROW_WHOLE CLI_ROW_COUNT
#define CLI_ROW_REAL(field, first, last)                                                                               \
    .kind = RT_OPTION_##field == RT_OPTION_network_gbps ? CLI_RATE : CLI_REAL, CLI_ROW_AT(field),                      \
    .least = (int64_t)((first)*1e6), .most = (int64_t)(last), .takes_list = true
#define CLI_ROW_CHOICE(field, first, last)                                                                             \
    .kind = CLI_CHOICE, CLI_ROW_AT(field), .choices = rt_##field##_names, .words = rt_##field##_words,                 \
    .takes_list = true
#define CLI_ROW_FLAG(field, first, last) .kind = CLI_FLAG, CLI_ROW_AT(field)
#define CLI_ROW_VERSION(field, first, last) .kind = CLI_CALL, .call = cli_parse_##field, .repeats = true
