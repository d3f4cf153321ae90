/* gpu_price.h — hourly GPU prices on the command line. Costs have the currency of the prices. */
#ifndef CLI_GPU_PRICE_H
#define CLI_GPU_PRICE_H

#include "cli/gpu_argument.h"

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

#endif
