/* backfill.c — mdot-backfill: the gain of better time limits under backfill, as one command. It writes PREFIX.md,
 * PREFIX.json and PREFIX.svg. */
#include "simulator/experiment/backfill_experiment.h"
#include "simulator/experiment/command_line.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: mdot-backfill NAME=TRACE.csv… --predictions FILE --out PREFIX [OPTION]…\n"
    "\n"
    "Simulates first come, first served, EASY and conservative backfill with the time limits that users request, the\n"
    "partition's maximum, limits as cluster/slurm sets them, plans by predictions, and exact times. Writes\n"
    "PREFIX.md and PREFIX.json, which cluster/simulator/draw.py draws.\n"
    "\n"
    "  --predictions FILE  network,…,step_ms,PREDICTOR,…: jobs are drawn from these networks\n"
    "  --predictor NAME    the column of the predictor (default mdot)\n"
    "  --gpus N            number of GPUs of the pool (default 512)\n"
    "  --windows N         number of windows of each trace (default 5)\n"
    "  --jobs N            number of jobs of a window (default 10000)\n"
    "  --loads L,…         loads to which submit times are stretched, at most 4 (default 0.7,0.9)\n"
    "  --most-limit S      maximum of the partition, seconds (default 604800)\n"
    "  --seed N            seed of drawn limits and networks (default 1)\n"
    "  --workers N         number of processes (default: one per core)\n";

static bool refuse_loads(const char *text)
{
    mdot_error err;
    mdot_fail(&err, MDOT_INVALID_ARGUMENT, "--loads: more than %d loads: %s", BF_MAX_LOADS, text);
    return ex_refuse(&err);
}

static bool parse_loads(const char *text, bf_setup *setup)
{
    setup->load_count = 0;
    for (;; text++) {
        if (setup->load_count == BF_MAX_LOADS) return refuse_loads(text);
        if (!ex_parse("loads", text, ',', 1e-3, 1e3, &setup->loads[setup->load_count++], &text)) return false;
        if (*text == '\0') return true;
    }
}

typedef struct files {
    const char *predictions, *predictor, *prefix;
} files;

static bool read_line(int argc, char **argv, bf_setup *setup, files *f)
{
    static const struct option options[] = {{"predictions", required_argument, NULL, 'p'},
                                            {"predictor", required_argument, NULL, 'c'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"gpus", required_argument, NULL, 'g'},
                                            {"windows", required_argument, NULL, 'w'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"loads", required_argument, NULL, 'l'},
                                            {"most-limit", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"workers", required_argument, NULL, 'k'},
                                            {0}};
    double gpus = 512, windows = 5, jobs = 10000, seed = 1, workers = (double)ex_core_count();
    bool is_right = true;
    opterr = 0; /* getopt would repeat unprintable characters */
    for (int option; is_right && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p': f->predictions = optarg; break;
        case 'c': f->predictor = optarg; break;
        case 'o': f->prefix = optarg; break;
        case 'g': is_right = ex_parse("gpus", optarg, '\0', 1, 1 << 20, &gpus, NULL); break;
        case 'w': is_right = ex_parse("windows", optarg, '\0', 1, 32, &windows, NULL); break;
        case 'j': is_right = ex_parse("jobs", optarg, '\0', 2, 1e7, &jobs, NULL); break;
        case 'l': is_right = parse_loads(optarg, setup); break;
        case 'm': is_right = ex_parse("most-limit", optarg, '\0', 1, 1e9, &setup->most_limit_s, NULL); break;
        case 's': is_right = ex_parse("seed", optarg, '\0', 0, 1e9, &seed, NULL); break;
        case 'k': is_right = ex_parse("workers", optarg, '\0', 1, 4096, &workers, NULL); break;
        default: is_right = false;
        }
    }
    while (is_right && optind < argc)
        is_right = ex_add_trace(argv[optind++], setup->trace_names, setup->trace_paths, &setup->trace_count);
    setup->gpus = (int)gpus;
    setup->windows = (size_t)windows;
    setup->jobs = (size_t)jobs;
    setup->seed = (uint64_t)seed;
    setup->workers = (size_t)workers;
    return is_right && setup->trace_count > 0 && f->prefix != NULL && f->predictions != NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Finds the predictor's column and the 95 % quantile of true over predicted times. */
static mdot_status choose_predictor(bf_setup *setup, const char *name, mdot_error *err)
{
    const ex_predictions *p = &setup->predictions;
    setup->column = EX_NO_COLUMN;
    for (size_t i = 0; i < p->predictor_count; i++)
        if (strcmp(p->names[i], name) == 0) setup->column = (int)i;
    if (setup->column == EX_NO_COLUMN)
        return mdot_fail(err, MDOT_NOT_FOUND, "the predictions have no column \"%s\"; name one with --predictor", name);
    double *ratios = calloc(p->network_count, sizeof *ratios);
    if (ratios == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < p->network_count; i++)
        ratios[i] = 1 / p->factors[(size_t)setup->column * p->network_count + i];
    qsort(ratios, p->network_count, sizeof *ratios, by_size);
    setup->upper = ratios[(size_t)(.95 * (double)(p->network_count - 1))];
    free(ratios);
    return MDOT_OK;
}

typedef void print_fn(FILE *stream, const bf_setup *setup, const bf_cell *cells);

static const struct {
    const char *suffix;
    print_fn *print;
} outputs[] = {{"md", bf_print_table}, {"json", bf_print_json}};

enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

typedef struct output {
    const bf_setup *setup;
    const bf_cell *cells;
    print_fn *print;
} output;

static void print_output(FILE *stream, const void *user)
{
    const output *o = user;
    o->print(stream, o->setup, o->cells);
}

static void show_progress(size_t done, size_t total)
{
    fprintf(stderr, "\r%zu of %zu simulations%s", done, total, done == total ? "\r\033[K" : "");
}

int main(int argc, char **argv)
{
    bf_setup setup = {.loads = {.7, .9}, .load_count = 2, .most_limit_s = 7 * 86400.};
    bf_cell *cells = NULL;
    files f = {.predictor = "mdot"};
    if (!read_line(argc, argv, &setup, &f)) {
        fputs(usage, stderr);
        return 2;
    }
    mdot_error err = {0};
    mdot_status status = ex_check_outputs(f.prefix, f.predictions, setup.trace_paths, setup.trace_count, &err);
    if (status == MDOT_OK) status = ex_predictions_read(f.predictions, &setup.predictions, &err);
    if (status == MDOT_OK) status = choose_predictor(&setup, f.predictor, &err);
    if (status == MDOT_OK) status = bf_run(&setup, isatty(STDERR_FILENO) ? show_progress : NULL, &cells, &err);
    for (size_t i = 0; status == MDOT_OK && i < OUTPUTS; i++)
        status = ex_write_output(f.prefix, outputs[i].suffix, print_output, &(output){&setup, cells, outputs[i].print},
                                 &err);
    if (status != MDOT_OK) ex_refuse(&err);
    ex_parallel_free(cells, bf_count(&setup), sizeof *cells);
    ex_predictions_free(&setup.predictions);
    return status == MDOT_OK ? 0 : 1;
}
