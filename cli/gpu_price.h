/* gpu_price.h — what an hour of a GPU costs, as the command line says it. Sums are in whatever currency the prices are. */
#ifndef CLI_GPU_PRICE_H
#define CLI_GPU_PRICE_H

#include "cli/gpus.h"

typedef struct cli_gpu_prices {
    bool given;
    double of_all; /* an hour of any GPU; 0: by name */
    struct {
        char name[CLI_GPU_NAME_BYTES];
        double an_hour;
    } item[CLI_MAX_GPUS];
    size_t count;
} cli_gpu_prices;

/* "2.5" or "2.5/h" for any GPU, or a file of lines "A100 2.5", behind '#' left out; false after a usage error. */
bool cli_read_gpu_prices(const char *command, char *text, cli_gpu_prices *prices);

/* Of an hour of the GPU; NAN where it has no price. */
double cli_gpu_price_of(const cli_gpu_prices *prices, const char *gpu);

#endif
