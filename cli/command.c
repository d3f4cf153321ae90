/* command.c — the options of a subcommand, ending with --help, which every subcommand has. */
#include "cli/command.h"

static const cli_option help_option = {.name = "help", .letter = 'h', .help = "show this help", .kind = CLI_FLAG};

const cli_option *cli_option_at(const cli_command *command, size_t i)
{
    if (i < command->option_count) return &command->options[i];
    return i == command->option_count ? &help_option : NULL;
}
