/* command_line.c — numbers, traces and files of experiments. */
#include "simulator/experiment/command_line.h"
#include "simulator/experiment/experiment.h"
#include "simulator/report/simulation_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ex_refuse(const mdot_error *err)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->message);
    return false;
}

bool ex_parse(const char *option, const char *text, char behind, double minimum, double maximum, double *out_value,
              const char **out_end)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || (*end != '\0' && *end != behind) || !(value >= minimum && value <= maximum)) {
        mdot_error err;
        mdot_fail(&err, MDOT_INVALID_ARGUMENT, "--%s: \"%s\" is not a number from %g to %g", option, text, minimum,
                  maximum);
        return ex_refuse(&err);
    }
    *out_value = value;
    if (out_end != NULL) *out_end = end;
    return true;
}

bool ex_add_trace(char *text, const char **names, const char **paths, size_t *count)
{
    char *sign = strchr(text, '=');
    if (sign == NULL || sign == text || sign[1] == '\0' || *count == EX_MAX_TRACES) {
        mdot_error err;
        mdot_fail(&err, MDOT_INVALID_ARGUMENT, "traces are NAME=FILE, at most %d: \"%s\"", EX_MAX_TRACES, text);
        return ex_refuse(&err);
    }
    *sign = '\0';
    names[*count] = text;
    paths[(*count)++] = sign + 1;
    return true;
}

mdot_status ex_read_window(const char *path, size_t windows, size_t jobs, size_t window, double load,
                           const sc_cluster *cluster, sc_workload *out_workload, mdot_error *err)
{
    mdot_status status = sc_read_trace(path, out_workload, err);
    if (status != MDOT_OK) return status;
    size_t fitting = 0;
    for (size_t i = 0; i < out_workload->job_count; i++)
        fitting += sc_cluster_holds(cluster, out_workload->jobs[i].gpus);
    sc_window cut = {.count = jobs, .load = load};
    if (windows > 1 && fitting >= jobs) cut.from = window * ((fitting - jobs) / (windows - 1));
    return sc_workload_select(out_workload, cluster, &cut, err);
}

mdot_status ex_check_outputs(const char *prefix, const char *predictions, const char *const *traces, size_t trace_count,
                             mdot_error *err)
{
    static const char *const suffixes[] = {"md", "json"};
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sizeof suffixes / sizeof *suffixes; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s.%s", prefix, suffixes[i]) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        status = sc_check_output(path, predictions, err);
        for (size_t t = 0; status == MDOT_OK && t < trace_count; t++) status = sc_check_output(path, traces[t], err);
        free(path);
    }
    return status;
}

mdot_status ex_write_output(const char *prefix, const char *suffix, void (*print)(FILE *stream, const void *user),
                            const void *user, mdot_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s.%s", prefix, suffix) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    FILE *file = NULL;
    mdot_status status = sc_open_output(path, &file, err);
    if (status == MDOT_OK) {
        print(file, user);
        bool is_right = ferror(file) == 0;
        if (fclose(file) != 0 || !is_right) status = mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    }
    free(path);
    return status;
}
