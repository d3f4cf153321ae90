/* cold_start.c — mdot-cold-start: estimates that start without knowledge and learn from completed jobs, as one
 * command. */
#include "simulator/experiment/experiment.h"

static const char usage[] =
    "usage: mdot-cold-start NAME=TRACE.csv… --predictions FILE --out PREFIX [OPTION]…\n"
    "\n"
    "Simulates shortest remaining service first with estimates that start cold and learn from jobs when they\n"
    "complete: histories of durations, predictions of step times, and both. Compares them with the truth and with\n"
    "policies without durations, on windows of traces. Writes PREFIX.md and PREFIX.json, which\n"
    "cluster/simulator/draw.py draws.\n"
    "\n"
    "  --predictions FILE  network,…,step_ms,mdot,…: jobs are drawn from these networks; jobs of the same user and "
    "name\n"
    "                      have the same network\n"
    "  --known SHARE       share of jobs whose number of steps is known, for the arm of both (default 0.5)\n"
    "  --gpus N            number of GPUs of the pool (default 64)\n"
    "  --windows N         number of windows of each trace (default 5)\n"
    "  --jobs N            number of jobs of a window (default 10000)\n"
    "  --load L            load to which submit times are stretched, in addition to unmodified windows (default 0.9)\n"
    "  --seeds N           number of seeds of the networks that jobs have (default 3)\n";

int main(int argc, char **argv) { return ex_command_run(usage, ex_list_learning_arms, argc, argv); }
