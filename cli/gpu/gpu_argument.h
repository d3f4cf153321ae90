/* gpu_argument.h — GPUs on the command line: by name, or by spec values if the GPU is absent from the table; and hourly
 * prices. Costs have the currency of the prices. */
#pragma once

#include "cli/cli.h"

enum { CLI_MAX_GPUS = 256, CLI_GPU_NAME_BYTES = 64 };

typedef struct cli_gpus {
    mdot_gpu item[CLI_MAX_GPUS]; /* names point into the GPU table or into `names` */
    char names[CLI_MAX_GPUS][CLI_GPU_NAME_BYTES];
    size_t count;
} cli_gpus;

/* Adds "A100,H100" or "all" to the cli_gpus; false after a usage error. */
bool cli_add_gpus(const char *command, char *text, void *gpus);
/* Adds a GPU to the cli_gpus from "name=X,tflops=400,memory=48,bandwidth=900" or from a file with one setting per line;
 * false after a usage error. Missing values come from the GPU named by `like`, or otherwise from the known GPU with the
 * nearest half-precision rate. Rates in other precisions scale with that rate. */
bool cli_add_gpu_spec(const char *command, char *text, void *gpus);

/* Option rows for a cli_gpus at `gpus` in `request`. */
#define CLI_GPU_OPTION(request, gpus, HELP)                                                                            \
    {                                                                                                                  \
        .heading = "GPUs", .name = "gpu", .letter = 'g', .value = "NAME,…", .help = HELP, .kind = CLI_CALL,            \
        .call = cli_add_gpus, .at = offsetof(request, gpus), .repeats = true, .names = mdot_gpu_names, .is_list = true \
    }
#define CLI_GPU_SPEC_OPTION(request, gpus, HELP)                                                                       \
    {                                                                                                                  \
        .name = "gpu-spec", .value = "FILE|KEY=X,…", .help = HELP, .kind = CLI_CALL, .call = cli_add_gpu_spec,         \
        .at = offsetof(request, gpus), .repeats = true, .files = "*"                                                   \
    }

/* Copies a name, cut to the buffer at a whole character. */
void cli_copy_gpu_name(const char *name, char out[CLI_GPU_NAME_BYTES]);

/* ---- gpu_price.c ------------------------------------------------------------------------------------------------- */

typedef struct cli_gpu_prices {
    bool is_set;
    double of_all; /* hourly price for any GPU; 0: prices are by name */
    struct {
        char name[CLI_GPU_NAME_BYTES];
        double an_hour;
    } item[CLI_MAX_GPUS];
    size_t count;
} cli_gpu_prices;

/* Reads into a cli_gpu_prices: "2.5" or "2.5/h" for any GPU, or a file with lines "A100 2.5" and comments after '#';
 * false after a usage error. */
bool cli_read_gpu_prices(const char *command, char *text, void *out_prices);

/* Returns the hourly GPU price, NAN if unknown. */
double cli_gpu_price_of(const cli_gpu_prices *prices, const char *gpu);

/* The length of a training, and prices. 0: the option is absent. */
typedef struct cli_total {
    int64_t steps, epochs, dataset;
    cli_gpu_prices prices;
} cli_total;

#define CLI_MAX_STEPS (INT64_C(1) << 50) /* exact in a double, with space for a product */

/* Option rows for a cli_total at `total` in `request`. */
#define CLI_LENGTH_OPTION(request, place, NAME, VALUE, HELP, ...)                                                      \
    {                                                                                                                  \
        .name = NAME, .value = VALUE, .help = HELP, .kind = CLI_COUNT, .at = offsetof(request, place), .least = 1,     \
        .most = CLI_MAX_STEPS, __VA_ARGS__                                                                             \
    }
#define CLI_LENGTH_OPTIONS(request, total)                                                                             \
    CLI_LENGTH_OPTION(request, total.steps, "steps", "N", "also show the time of N steps", .excludes = "epochs"),      \
        CLI_LENGTH_OPTION(request, total.epochs, "epochs", "E",                                                        \
                          "also show the time of E epochs over the samples of --dataset", .needs = "dataset"),         \
        CLI_LENGTH_OPTION(request, total.dataset, "dataset", "N", "number of samples of an epoch, for --epochs",       \
                          .needs = "epochs")
#define CLI_PRICE_OPTION(request, total)                                                                               \
    {                                                                                                                  \
        .name = "price", .value = "X/h|FILE",                                                                          \
        .help = "price of a GPU per hour, for example 2.5, $2.5/h or 2EUR, or a file of lines such as \"A100 2.5\". "  \
                "Shows the cost of the training, or of a million samples if the number of steps is unknown",           \
        .kind = CLI_CALL, .call = cli_read_gpu_prices, .at = offsetof(request, total.prices), .files = "*"             \
    }

/* Returns the number of steps; 0 if it is unknown. A last batch that is partly filled counts as a step. */
double cli_total_steps(const cli_total *total, const mdot_configuration *c);
/* Returns the cost of all steps, or of a million samples if their number is unknown; NAN without a price. */
double cli_total_cost(const cli_total *total, const mdot_configuration *c, const mdot_prediction *p);
