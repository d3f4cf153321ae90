/* experiment_command.c — the command line of an experiment. It writes PREFIX.md, PREFIX.json and PREFIX.svg. */
#include "simulator/experiment/experiment_command.h"
#include "simulator/report/simulation_report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool refuse(const mdot_error *err)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->message);
    return false;
}

static bool parse(const char *option, const char *text, double least, double most, double *out_value)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least && value <= most)) {
        mdot_error err;
        mdot_fail(&err, MDOT_INVALID_ARGUMENT, "--%s: \"%s\" is not a number from %g to %g", option, text, least, most);
        return refuse(&err);
    }
    *out_value = value;
    return true;
}

static bool add_trace(char *text, ex_setup *setup)
{
    char *sign = strchr(text, '=');
    if (sign == NULL || sign == text || sign[1] == '\0' || setup->trace_count == EX_MAX_TRACES) {
        mdot_error err;
        mdot_fail(&err, MDOT_INVALID_ARGUMENT, "traces are NAME=FILE, at most %d: \"%s\"", EX_MAX_TRACES, text);
        return refuse(&err);
    }
    *sign = '\0';
    setup->trace_names[setup->trace_count] = text;
    setup->trace_paths[setup->trace_count++] = sign + 1;
    return true;
}

static bool read_line(int argc, char **argv, ex_setup *setup, const char **out_predictions, const char **out_prefix)
{
    static const struct option options[] = {{"predictions", required_argument, NULL, 'p'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"gpus", required_argument, NULL, 'g'},
                                            {"windows", required_argument, NULL, 'w'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"load", required_argument, NULL, 'l'},
                                            {"seeds", required_argument, NULL, 's'},
                                            {"known", required_argument, NULL, 'k'},
                                            {0}};
    double gpus = 64, windows = 5, jobs = 10000, load = .9, seeds = 3, known = .5;
    bool is_right = true;
    opterr = 0; /* getopt would repeat unprintable characters */
    for (int option; is_right && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            *out_predictions = optarg;
            break;
        case 'o':
            *out_prefix = optarg;
            break;
        case 'g':
            is_right = parse("gpus", optarg, 1, 1 << 20, &gpus);
            break;
        case 'w':
            is_right = parse("windows", optarg, 1, 32, &windows);
            break;
        case 'j':
            is_right = parse("jobs", optarg, 2, 1e7, &jobs);
            break;
        case 'l':
            is_right = parse("load", optarg, 1e-3, 1e3, &load);
            break;
        case 's':
            is_right = parse("seeds", optarg, 1, 1000, &seeds);
            break;
        case 'k':
            is_right = parse("known", optarg, 0, 1, &known);
            break;
        default:
            is_right = false;
        }
    }
    while (is_right && optind < argc) is_right = add_trace(argv[optind++], setup);
    setup->gpus = (int)gpus;
    setup->windows = (size_t)windows;
    setup->jobs = (size_t)jobs;
    setup->seeds = (size_t)seeds;
    setup->loads[1] = load;
    setup->known_share = known;
    return is_right && setup->trace_count > 0 && *out_prefix != NULL;
}

static mdot_status write_file(const char *prefix, const char *suffix,
                              void (*print)(FILE *stream, const ex_setup *setup, const ex_results *results),
                              const ex_setup *setup, const ex_results *results, mdot_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s.%s", prefix, suffix) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory");
    FILE *file = NULL;
    mdot_status status = sc_open_output(path, &file, err);
    if (status == MDOT_OK) {
        print(file, setup, results);
        bool is_right = ferror(file) == 0;
        if (fclose(file) != 0 || !is_right) status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    }
    free(path);
    return status;
}

/* Refuses a prefix whose files are inputs. */
static mdot_status check_outputs(const char *prefix, const char *predictions, const ex_setup *setup, mdot_error *err)
{
    static const char *const suffixes[] = {"md", "json", "svg"};
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sizeof suffixes / sizeof *suffixes; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s.%s", prefix, suffixes[i]) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory");
        status = sc_check_output(path, predictions, err);
        for (size_t t = 0; status == MDOT_OK && t < setup->trace_count; t++)
            status = sc_check_output(path, setup->trace_paths[t], err);
        free(path);
    }
    return status;
}

static void show_progress(void *user, size_t done, size_t total)
{
    (void)user;
    fprintf(stderr, "\r%zu of %zu windows%s", done, total, done == total ? "\r\033[K" : "");
}

int ex_command_run(const ex_command *command, int argc, char **argv)
{
    ex_setup setup = {0};
    ex_results results = {0};
    const char *predictions = NULL, *prefix = NULL;
    if (!read_line(argc, argv, &setup, &predictions, &prefix)) {
        fputs(command->usage, stderr);
        return 2;
    }
    mdot_error err = {0};
    mdot_status status = check_outputs(prefix, predictions, &setup, &err);
    if (status == MDOT_OK && predictions != NULL) status = ex_predictions_read(predictions, &setup.predictions, &err);
    if (status == MDOT_OK) status = command->list_arms(&setup, &err);
    if (status == MDOT_OK) status = ex_run(&setup, isatty(STDERR_FILENO) ? show_progress : NULL, NULL, &results, &err);
    if (status == MDOT_OK) status = write_file(prefix, "md", ex_print_table, &setup, &results, &err);
    if (status == MDOT_OK) status = write_file(prefix, "json", ex_print_json, &setup, &results, &err);
    if (status == MDOT_OK) status = write_file(prefix, "svg", command->print_svg, &setup, &results, &err);
    if (status != MDOT_OK) refuse(&err);
    ex_results_free(&results);
    ex_predictions_free(&setup.predictions);
    return status == MDOT_OK ? 0 : 1;
}
