/* experiment_command.c — the command line of an experiment. It writes PREFIX.md and PREFIX.json. */
#include "simulator/experiment/command_line.h"
#include "simulator/experiment/experiment.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

static bool read_model(const char *text, sc_error_model *out_model)
{
    static const char *const names[] = {"log-normal", "normal", "two-point"};
    mdot_error err;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out_model = (sc_error_model)i;
            return true;
        }
    mdot_fail(&err, MDOT_INVALID_ARGUMENT, "--error-model takes normal, two-point or log-normal, not \"%s\"", text);
    return ex_refuse(&err);
}

static bool read_line(int argc, char **argv, ex_setup *setup, const char **out_predictions, const char **out_prefix)
{
    static const struct option options[] = {
        {"predictions", required_argument, NULL, 'p'}, {"out", required_argument, NULL, 'o'},
        {"gpus", required_argument, NULL, 'g'},        {"windows", required_argument, NULL, 'w'},
        {"jobs", required_argument, NULL, 'j'},        {"load", required_argument, NULL, 'l'},
        {"seeds", required_argument, NULL, 's'},       {"known", required_argument, NULL, 'k'},
        {"error-model", required_argument, NULL, 'e'}, {0}};
    double gpus = 64, windows = 5, jobs = 10000, load = .9, seeds = 3, known = .5;
    bool is_right = true;
    opterr = 0; /* getopt would repeat unprintable characters */
    for (int option; is_right && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p': *out_predictions = optarg; break;
        case 'o': *out_prefix = optarg; break;
        case 'g': is_right = ex_parse("gpus", optarg, '\0', 1, 1 << 20, &gpus, NULL); break;
        case 'w': is_right = ex_parse("windows", optarg, '\0', 1, 32, &windows, NULL); break;
        case 'j': is_right = ex_parse("jobs", optarg, '\0', 2, 1e7, &jobs, NULL); break;
        case 'l': is_right = ex_parse("load", optarg, '\0', 1e-3, 1e3, &load, NULL); break;
        case 's': is_right = ex_parse("seeds", optarg, '\0', 1, 1000, &seeds, NULL); break;
        case 'k': is_right = ex_parse("known", optarg, '\0', 0, 1, &known, NULL); break;
        case 'e': is_right = read_model(optarg, &setup->error_model); break;
        default: is_right = false;
        }
    }
    while (is_right && optind < argc)
        is_right = ex_add_trace(argv[optind++], setup->trace_names, setup->trace_paths, &setup->trace_count);
    setup->gpus = (int)gpus;
    setup->windows = (size_t)windows;
    setup->jobs = (size_t)jobs;
    setup->seeds = (size_t)seeds;
    setup->loads[1] = load;
    setup->known_share = known;
    return is_right && setup->trace_count > 0 && *out_prefix != NULL;
}

/* A file to print. */
typedef struct output {
    const ex_setup *setup;
    const ex_results *results;
    void (*print)(FILE *stream, const ex_setup *setup, const ex_results *results);
} output;

static void print_output(FILE *stream, const void *user)
{
    const output *o = user;
    o->print(stream, o->setup, o->results);
}

static void show_progress(void *user, size_t done, size_t total)
{
    (void)user;
    fprintf(stderr, "\r%zu of %zu windows%s", done, total, done == total ? "\r\033[K" : "");
}

int ex_command_run(const char *usage, mdot_status (*list_arms)(ex_setup *setup, mdot_error *err), int argc, char **argv)
{
    ex_setup setup = {0};
    ex_results results = {0};
    const char *predictions = NULL, *prefix = NULL;
    if (!read_line(argc, argv, &setup, &predictions, &prefix)) {
        fputs(usage, stderr);
        return 2;
    }
    mdot_error err = {0};
    mdot_status status = ex_check_outputs(prefix, predictions, setup.trace_paths, setup.trace_count, &err);
    if (status == MDOT_OK && predictions != NULL) status = ex_predictions_read(predictions, &setup.predictions, &err);
    if (status == MDOT_OK) status = list_arms(&setup, &err);
    if (status == MDOT_OK) status = ex_run(&setup, isatty(STDERR_FILENO) ? show_progress : NULL, NULL, &results, &err);
    const struct {
        const char *suffix;
        output output;
    } outputs[] = {{"md", {&setup, &results, ex_print_table}}, {"json", {&setup, &results, ex_print_json}}};
    for (size_t i = 0; status == MDOT_OK && i < sizeof outputs / sizeof *outputs; i++)
        status = ex_write_output(prefix, outputs[i].suffix, print_output, &outputs[i].output, &err);
    if (status != MDOT_OK) ex_refuse(&err);
    ex_results_free(&results);
    ex_predictions_free(&setup.predictions);
    return status == MDOT_OK ? 0 : 1;
}
