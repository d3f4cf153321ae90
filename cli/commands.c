/* commands.c — the list of subcommands, `mdot` as a table, and `mdot help`, which prints both. */
#include "base/suggest.h"
#include "cli/cli.h"

#include <string.h>

const cli_command *const cli_commands[] = {&cli_predict,      &cli_plan,    &cli_report_command, &cli_calibrate,
#ifdef MDOT_HAVE_COMPILER
                                           &cli_compile,
#endif
                                           &cli_extract,      &cli_inspect, &cli_bench,
#ifdef MDOT_HAVE_COMPILER
                                           &cli_verify,       &cli_check,
#endif
                                           &cli_gpus_command, &cli_jobs,    &cli_converge,       &cli_help,      NULL};

#ifdef MDOT_HAVE_COMPILER
#define ABOUT_COMPILING "It also compiles the trained Transformers that make these predictions."
#else /* target mdot_cli_without_compiler */
#define ABOUT_COMPILING "This command lacks the compiler of predictors: compile, verify and check."
static const char in_compiler[] =
    "`mdot %s` needs the compiler, which this command lacks. In Python, mdot.%s does the same after `pip install "
    "'mdot-predict[compiler]'`; the Debian package mdot and a build from source have the complete command";
#endif

/* Commands of other programs, and messages about them, in which %s is the command. */
static const char in_python[] = "`mdot %s` needs Python: use `python3 -m mdot %s`, which the wheel mdot-predict has";
static const char in_store[] = "the store of measured steps has a program of its own: use `mdot-store`, which the "
                               "Debian package mdot-cluster, the wheel mdot-store and the folder cluster/ of the "
                               "source have";
static const char *const elsewhere[][2] = {
#ifndef MDOT_HAVE_COMPILER
    {"compile", in_compiler},       {"verify", in_compiler},     {"check", in_compiler},
#endif
    {"export", in_python},          {"record-trace", in_python}, {"explain-trace", in_python},
    {"record-overhead", in_python}, {"store", in_store},
};

static const cli_option options[] = {{.name = "version", .help = "show the version", .kind = CLI_FLAG}};
static const cli_variable environment[] = {
    {"MDOT_PREDICTOR", "the predictor that `mdot predict` uses by default; --model overrides it. If it is unset, mdot "
                       "uses the default predictor of its installation"},
    {"MDOT_DEVICE", "the device that runs predictors unless an option selects one: cpu, cuda, cuda:1, … or auto, which "
                    "selects the faster one"},
    {"MDOT_CPU_ISA", "the ISA level whose code runs unless an option selects one: x86-64-v3, x86-64-v4, x86-64-bf16, "
                     "x86-64-amx, aarch64-neon or aarch64-bf16"},
    {"MDOT_NVRTC, CUDA_HOME",
     "the path of the NVRTC library that compiles for GPUs, and of a CUDA toolkit that contains one. "
     "If both are unset, the dynamic loader searches for the library"},
    {"TMPDIR", "the folder of the temporary files of `mdot check` (default /tmp)"},
    {NULL, NULL},
};

const cli_command cli_program = {
    .name = "mdot",
    .summary = "predict the training time of deep-learning jobs; compile predictors",
    .synopsis = "COMMAND [OPTION]…",
    .description = "mdot predicts the time of a deep-learning training step on each GPU from the network's ONNX "
                   "graph. " ABOUT_COMPILING,
    CLI_OPTIONS(options),
    .notes = "`mdot help COMMAND` or `mdot COMMAND --help` shows a command's own options.",
    .commands = cli_commands,
    .environment = environment,
};

/* Whether `mdot predict` has a visible option of this name, for example explain, fit or price. */
static bool is_predict_option(const char *name)
{
    for (size_t i = 0; i < cli_predict.option_count; i++)
        if (strcmp(name, cli_predict.options[i].name) == 0) return cli_predict.options[i].help != NULL;
    return false;
}

const cli_command *cli_find_command(const char *name)
{
    bs_suggest suggestion = bs_suggest_begin(name);
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        if (strcmp(name, (*command)->name) == 0) return *command;
        bs_suggest_add(&suggestion, (*command)->name);
    }
    bs_suggest_add(&suggestion, "--help");
    bs_suggest_add(&suggestion, "--version");
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (strcmp(name, elsewhere[i][0]) != 0) continue;
        cli_message(NULL, elsewhere[i][1], name, name);
        return NULL;
    }
    if (is_predict_option(name)) {
        cli_message(NULL, "\"%s\" is an option of a command: use `mdot predict --%s`; see `mdot help predict`", name,
                    name);
        return NULL;
    }
    cli_message(NULL,
                *name == '-' ? "unknown option %s%s; see `mdot --help`"
                             : "there is no command \"%s\"%s; see `mdot --help`",
                name, bs_suggest_end(&suggestion).text);
    return NULL;
}

typedef struct help_request {
    bool markdown;
    const char *shell;
} help_request;

static int run_help(int argc, char **argv)
{
    help_request request = {0};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_help, argc, argv, &request, &operands, &status)) return status;
    if (operands.count > 1) return cli_usage_error("help", "expected at most one command");
    if (request.shell != NULL)
        return cli_print_completion(stdout, request.shell)
                   ? CLI_OK
                   : cli_usage_error("help", "--completion takes bash or zsh, not \"%s\"", request.shell);
    const cli_command *command = operands.count == 0 ? &cli_program : cli_find_command(operands.item[0]);
    if (command == NULL) return CLI_USAGE;
    if (request.markdown)
        cli_print_markdown(stdout, command);
    else
        cli_print_help(stdout, command);
    return CLI_OK;
}

static const cli_option help_options[] = {
    {.name = "markdown", .kind = CLI_FLAG, .at = offsetof(help_request, markdown)},
    {.name = "completion", .value = "SHELL", .kind = CLI_TEXT, .at = offsetof(help_request, shell)},
};
const cli_command cli_help = {
    .name = "help",
    .summary = "show the help of a command",
    .synopsis = "[COMMAND]",
    .description =
        "Shows the help of a command, like `mdot COMMAND --help`. Without an argument, it lists all commands.",
    CLI_OPTIONS(help_options),
    .exit_status = "0 success, 1 failure, 2 unknown command",
    .run = run_help,
    .takes_command = true,
};
