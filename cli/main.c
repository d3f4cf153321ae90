/* main.c — the `mdot` command: finds the subcommand and hands over. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const cli_command commands[] = {
    {"predict", cli_predict, "predict a training job's step time, throughput and memory on GPUs"},
    {"compile", cli_compile, "compile a predictor (ONNX) into an artefact (.mdot)"},
    {"tokens", cli_tokens, "show a training job (ONNX) as the operator sequence that a predictor reads"},
    {"inspect", cli_inspect, "show what an artefact holds: entry points, buckets, kernels, sizes"},
    {"bench", cli_bench, "measure the latency of an artefact on this machine"},
    {"verify", cli_verify, "hold an artefact's code to the double-precision evaluation of its model"},
    {"check", cli_check, "run ONNX test directories through compiled code"},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *stream)
{
    fputs("Usage: mdot COMMAND [OPTION]…\n"
          "\n"
          "mdot compiles trained Transformers that predict how long a deep-learning training step takes.\n"
          "\n"
          "Commands:\n",
          stream);
    for (int i = 0; i < COMMAND_COUNT; i++) fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "Options:\n"
          "  -h, --help     show this help; `mdot COMMAND --help` shows a command's\n"
          "      --version  show the version\n"
          "\n"
          "Exit status: 0 success, 1 failure, 2 a wrong command line.\n",
          stream);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return cli_finish("mdot", CLI_OK);
    }
    if (strcmp(name, "--version") == 0) {
        printf("mdot %s\n", mdot_version());
        return cli_finish("mdot", CLI_OK);
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i].name) == 0) return cli_finish(name, commands[i].run(argc - 1, argv + 1));
    fprintf(stderr, "mdot: there is no command \"%s\"; see `mdot --help`\n", name);
    return CLI_USAGE;
}
