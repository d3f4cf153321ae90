/* verify.c — `mdot verify`: compiled code against the double-precision evaluation of the model. */
#include "cli/cli.h"
#include "mdot/mdotc.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: mdot verify MODEL.mdot MODEL.onnx [OPTION]…\n"
    "\n"
    "Runs an artefact on random inputs and holds every output to the reference evaluator, which\n"
    "computes the ONNX model in double precision: each bucket, at full and partial lengths, on each\n"
    "CPU level that this machine runs and on its first GPU, if the artefact has code for it;\n"
    "boolean inputs (masks) are scattered at random. Where an output of the model is nothing but NaN,\n"
    "nothing is verified, and the bucket fails.\n"
    "\n"
    "Options:\n"
    "      --entry NAME       the entry point that MODEL.onnx became (default \"predict\")\n"
    "  -d, --dim NAME=N       dimensions fixed when compiling\n"
    "      --tolerance X      largest relative error that passes (default 1e-4; a GPU that\n"
    "                         multiplies bf16 or fp16 may always err by 1e-2)\n"
    "      --seed N           of the random inputs (default 1)\n"
    "      --json             print rows as JSON\n"
    "  -h, --help             show this help\n"
    "\n"
    "Exit status: 0 all pass, 1 one failed or could not run, 2 usage.\n";

typedef struct report {
    bool json;
    size_t rows;
} report;

static void print_row(void *user, const mdotc_verify_row *row)
{
    report *r = user;
    if (r->json) {
        printf("%s\n  {\"entry\": ", r->rows == 0 ? "[" : ",");
        cli_json_string(stdout, row->entry);
        printf(", \"level\": ");
        cli_json_string(stdout, row->level);
        printf(", \"bucket\": %lld, \"worst_length\": %lld, \"worst_error\": %.3e, \"passed\": %s}",
               (long long)row->max_length, (long long)row->worst_length, row->worst_error,
               row->passed ? "true" : "false");
    } else {
        if (r->rows == 0) printf("%-12s %-10s %7s %12s %9s\n", "entry", "level", "bucket", "worst error", "at length");
        printf("%-12s %-10s %7lld %12.2e %9lld  %s\n", row->entry, row->level, (long long)row->max_length,
               row->worst_error, (long long)row->worst_length, row->passed ? "pass" : "FAIL");
        fflush(stdout);
    }
    r->rows++;
}

static void show_warning(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "mdot verify: warning: %s\n", message);
}

int cli_verify(int argc, char **argv)
{
    static const struct option options[] = {{"entry", required_argument, NULL, 'e'},
                                            {"dim", required_argument, NULL, 'd'},
                                            {"tolerance", required_argument, NULL, 't'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    cli_dims dims = {0};
    report state = {0};
    int64_t seed = 1;
    mdotc_verify_options verify = {
        .struct_size = sizeof verify, .row = print_row, .warning = show_warning, .user = &state};
    for (int option; (option = cli_next_option(argc, argv, ":d:h", options)) != -1;) {
        char *end;
        switch (option) {
        case 'e':
            verify.entry = optarg;
            break;
        case 'd':
            if (!cli_parse_dim("verify", optarg, &dims)) return CLI_USAGE;
            break;
        case 't':
            verify.tolerance = strtod(optarg, &end);
            if (end == optarg || *end != '\0' || !(verify.tolerance > 0))
                return cli_usage_error("verify", "--tolerance takes a positive number, not \"%s\"", optarg);
            break;
        case 's':
            if (!cli_parse_int("verify", "--seed", optarg, 1, INT64_MAX, &seed)) return CLI_USAGE;
            break;
        case 'j':
            state.json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return CLI_OK;
        default:
            return CLI_USAGE;
        }
    }
    if (argc - optind != 2) return cli_usage_error("verify", "give an artefact and its model");
    verify.dims = dims.item;
    verify.dim_count = dims.count;
    verify.seed = (uint64_t)seed;
    mdot_error err = {0};
    bool passed = false;
    mdot_status status = mdotc_verify(argv[optind], argv[optind + 1], &verify, &passed, &err);
    if (state.json && state.rows > 0) puts("\n]");
    if (status != MDOT_OK) return cli_report("verify", &err);
    return passed ? CLI_OK : CLI_FAILED;
}
