/* command.c — the options of a command, which end with --help, and programs without subcommands. */
#include "base/command/command.h"

#include <string.h>

static const cli_option help_option = {.name = "help", .letter = 'h', .help = "show this help", .kind = CLI_FLAG},
                        version_option = {.name = "version", .help = "show the version", .kind = CLI_FLAG};

const cli_option *cli_option_at(const cli_command *command, size_t i)
{
    if (i < command->option_count) return &command->options[i];
    if (i == command->option_count) return &help_option;
    bool has_version = command == &cli_program && command->commands == NULL;
    return has_version && i == command->option_count + 1 ? &version_option : NULL;
}

int cli_run_program(int argc, char **argv)
{
    static const char completion[] = "--completion=";
    const char *name = cli_program.name, *only = argc == 2 ? argv[1] : "";
    if (argc < 2) {
        cli_print_help(stderr, &cli_program);
        return CLI_USAGE;
    }
    int status = CLI_OK;
    if (strcmp(only, "--version") == 0)
        printf("%s %s\n", name, MDOT_VERSION_STRING);
    else if (strcmp(only, "--man") == 0)
        cli_print_man(stdout, &cli_program);
    else if (strcmp(only, "--markdown") == 0)
        cli_print_markdown(stdout, &cli_program);
    else if (strncmp(only, completion, strlen(completion)) != 0)
        status = cli_program.run(argc, argv);
    else if (!cli_print_completion(stdout, only + strlen(completion)))
        status = cli_usage_error(name, "--completion takes bash or zsh");
    return cli_finish(name, status);
}
