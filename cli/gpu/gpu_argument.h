/* gpu_argument.h — GPUs on the command line: by name, or by spec values if the GPU is absent from the table; and hourly
 * prices. Costs have the currency of the prices. */
#pragma once

#include "cli/cli.h"
#include "mdot/mdot.h"

enum { CLI_MAX_GPUS = 256, CLI_GPU_NAME_BYTES = 64 };

typedef struct cli_gpus {
    mdot_gpu item[CLI_MAX_GPUS]; /* names point into the GPU table or into `names` */
    char names[CLI_MAX_GPUS][CLI_GPU_NAME_BYTES];
    const char *spec[CLI_MAX_GPUS]; /* argument of --gpu-spec, borrowed; NULL: a GPU of the table */
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

enum { CLI_MAX_PRICES = 512 };

/* The latest price of a GPU model at one place. */
typedef struct cli_gpu_price {
    char name[CLI_GPU_NAME_BYTES];
    char place[64]; /* provider and region; may be empty */
    char date[12];  /* such as 2026-11-29; may be empty */
    double an_hour;
} cli_gpu_price;

typedef struct cli_gpu_prices {
    bool is_set;
    const char *text; /* the argument, borrowed */
    double of_all;    /* hourly price for any GPU; 0: prices are by name */
    cli_gpu_price item[CLI_MAX_PRICES];
    size_t count;
    char currency[8]; /* of all rows; may be empty */
    bool has_origins; /* rows have a currency, place or date */
} cli_gpu_prices;

/* Reads into a cli_gpu_prices: "2.5" or "2.5/h" for any GPU, or "TABLE[,COLUMN=VALUE…]" as in
 * docs/reference/formats/prices.md; false after a usage error. */
bool cli_read_gpu_prices(const char *command, char *text, void *out_prices);

/* Returns the hourly GPU price, the lowest one of all places; NAN if unknown. */
double cli_gpu_hour_price(const cli_gpu_prices *prices, const char *gpu);
/* Prints the price and its origin, for example "3.5 USD/h (aws us-east-1, 2026-11-01)". */
void cli_print_price(const cli_gpu_prices *prices, const char *gpu);
/* Writes the JSON member "price" and a comma; nothing without a price. */
void cli_json_price(FILE *out, const cli_gpu_prices *prices, const char *gpu);

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
        .name = "price", .value = "X/h|FILE[,COLUMN=X…]",                                                              \
        .help = "price of a GPU per hour, for example 2.5, $2.5/h or 2EUR, or a table (CSV) with the columns gpu and " \
                "price and, if known, currency, provider, region and date, for example prices.csv,provider=aws. "      \
                "Shows the cost of the training, or of a million samples if the number of steps is unknown",           \
        .kind = CLI_CALL, .call = cli_read_gpu_prices, .at = offsetof(request, total.prices), .files = "*"             \
    }

/* Returns the number of steps; 0 if it is unknown. A last batch that is partly filled counts as a step. */
double cli_total_steps(const cli_total *total, const mdot_configuration *c);
/* Returns the cost of all steps, or of a million samples if their number is unknown; NAN without a price. */
double cli_total_cost(const cli_total *total, const mdot_configuration *c, const mdot_prediction *p);
