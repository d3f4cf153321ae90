/* main.c — the `mdot` command: finds the subcommand and runs it. */
#include "cli/cli.h"

#include <string.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_help(stderr, &cli_program);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_help(stdout, &cli_program);
        return cli_finish("mdot", CLI_OK);
    }
    if (strcmp(name, "--version") == 0) {
        printf("mdot %s\n", mdot_version());
        return cli_finish("mdot", CLI_OK);
    }
    const cli_command *command = cli_find_command(name);
    return command == NULL ? CLI_USAGE : cli_finish(name, command->run(argc - 1, argv + 1));
}
