/* experiment_command.h — the command line that experiments share: traces, their windows, predictions and results. */
#ifndef SC_EXPERIMENT_COMMAND_H
#define SC_EXPERIMENT_COMMAND_H

#include "simulator/experiment/experiment.h"

typedef struct ex_command {
    const char *usage;
    mdot_status (*list_arms)(ex_setup *setup, mdot_error *err);
    void (*print_svg)(FILE *stream, const ex_setup *setup, const ex_results *results);
} ex_command;

/* Runs the experiment and writes its three files. Returns the exit status: 0 success, 1 failure, 2 usage error. */
int ex_command_run(const ex_command *command, int argc, char **argv);

#endif
