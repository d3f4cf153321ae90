/* gpus.h — cards of the command line: by name, or by figures of one that is in no table. */
#ifndef CLI_GPUS_H
#define CLI_GPUS_H

#include "cli/command.h"

enum { CLI_MAX_GPUS = 256, CLI_GPU_NAME_BYTES = 64 };

typedef struct cli_gpus {
    mdot_gpu item[CLI_MAX_GPUS]; /* names are the table's, or in `names` */
    char names[CLI_MAX_GPUS][CLI_GPU_NAME_BYTES];
    size_t count;
} cli_gpus;

/* "A100,H100" or "all" added; false after a usage error. */
bool cli_add_gpus(const char *command, char *text, cli_gpus *gpus);
/* "name=X,tflops=400,memory=48,bandwidth=900", or a file of such settings, one a line: a card added; false after a
 * usage error. What is not given is as of the card that it says it is `like`, else of the one in the table whose
 * rate in half precision is nearest; rates of other precisions scale with that one. */
bool cli_add_gpu_spec(const char *command, char *text, cli_gpus *gpus);

/* As far as there is room, up to a whole character. */
void cli_copy_gpu_name(const char *name, char out[CLI_GPU_NAME_BYTES]);

/* How a predictor that mdot comes with knows the card: "trained on", "checked", or "". */
const char *cli_gpu_standing(const char *name);

#endif
