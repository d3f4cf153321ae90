/* program.c — runs a program without subcommands. */
#include "base/command/command.h"

#include <string.h>

int cli_run_program(int argc, char **argv)
{
    static const char completion[] = "--completion=";
    const char *name = cli_program.name, *only = argc == 2 ? argv[1] : "";
    if (argc < 2) {
        cli_print_help(stderr, &cli_program);
        return CLI_USAGE;
    }
    int status = CLI_OK;
    if (strcmp(only, "--markdown") == 0)
        cli_print_markdown(stdout, &cli_program);
    else if (strncmp(only, completion, strlen(completion)) != 0)
        status = cli_program.run(argc, argv);
    else if (!cli_print_completion(stdout, only + strlen(completion)))
        status = cli_usage_error(name, "--completion takes bash or zsh");
    return cli_finish(name, status);
}
