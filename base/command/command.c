/* command.c — the options of a command, which end with --help. */
#include "base/command/command.h"

static const cli_option help_option = {.name = "help", .letter = 'h', .help = "show this help", .kind = CLI_FLAG},
                        version_option = {.name = "version", .help = "show the version", .kind = CLI_FLAG};

const cli_option *cli_option_at(const cli_command *command, size_t i)
{
    if (i < command->option_count) return &command->options[i];
    if (i == command->option_count) return &help_option;
    bool has_version = command == &cli_program && command->commands == NULL;
    return has_version && i == command->option_count + 1 ? &version_option : NULL;
}
