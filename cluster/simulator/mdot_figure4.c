/* figure4.c — mdot-figure4: the survey's experiment as one command. */
#include "simulator/experiment/experiment.h"

static const char usage[] =
    "usage: mdot-figure4 NAME=TRACE.csv… --out PREFIX [OPTION]…\n"
    "\n"
    "Simulates shortest remaining service first under mispredicted durations, and policies without "
    "durations, on windows\n"
    "of traces. Writes PREFIX.md and PREFIX.json, which cluster/simulator/draw.py draws.\n"
    "\n"
    "  --predictions FILE  network,…,step_ms,PREDICTOR,…: jobs are drawn from these networks, and "
    "each predictor is an arm\n"
    "  --gpus N            number of GPUs of the pool (default 64)\n"
    "  --windows N         number of windows of each trace (default 5)\n"
    "  --jobs N            number of jobs of a window (default 10000)\n"
    "  --load L            load to which submit times are stretched, in addition to unmodified "
    "windows (default 0.9)\n"
    "  --seeds N           number of seeds of random errors (default 3)\n"
    "  --error-model M     distribution of random errors with the stated mean: normal, two-point or log-normal, with\n"
    "                      median one (default log-normal)\n";

int main(int argc, char **argv) { return ex_command_run(usage, ex_list_arms, argc, argv); }
