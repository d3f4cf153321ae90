/* cli.h — the subcommands of `mdot`. Each has a file cmd_NAME.c in a group's folder, which uses only the public headers
 * and base/. A table defines the options (base/command/command.h). */
#pragma once

#include "base/command/command.h"

extern const cli_command cli_predict, cli_plan, cli_report_command, cli_calibrate, cli_compile, cli_extract,
    cli_inspect, cli_bench, cli_verify, cli_check, cli_gpus_command, cli_jobs, cli_converge, cli_help;

/* All subcommands in the order of `mdot --help`, terminated by NULL. */
extern const cli_command *const cli_commands[];

/* Finds a subcommand; NULL after a usage error that suggests the nearest. */
const cli_command *cli_find_command(const char *name);

/* Values of --level and --device, for completion; terminated by NULL. */
const char *const *cli_isa_names(void);
const char *const *cli_device_names(void);

struct mdot_job;

/* Prints the work check of a job that was made from a program or a graph, one line for each known comparison. */
void cli_print_check(const struct mdot_job *job, const char *indent);
