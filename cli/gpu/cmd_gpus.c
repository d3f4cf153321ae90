/* cmd_gpus.c — `mdot gpus`: list the known GPU models with their spec values. */
#include "cli/gpu/gpu_argument.h"

#include <string.h>

typedef struct gpus_request {
    bool json;
} gpus_request;

/* Returns how the shipped predictor knows the GPU model: "trained on", "inference", or "". */
static const char *evidence_of(const char *name)
{
    static const struct {
        const char *name, *evidence;
    } gpus[] = {
#define TRAINED_ON(gpu) {gpu, "trained on"},
#define INFERENCE_OF(gpu) {gpu, "inference"},
#include "weights/measured_gpus.def"
#undef TRAINED_ON
#undef INFERENCE_OF
    };
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(gpus[i].name, name) == 0) return gpus[i].evidence;
    return "";
}

static void print_table(void)
{
    printf("%32s%15s%21s\n", "", "TFLOPS, dense", "NVLink");
    printf("%-17s %5s %6s %7s %7s %7s %4s %6s  %s\n", "GPU", "GiB", "GB/s", "fp32", "tf32", "fp16", "SMs", "GB/s",
           "predictor");
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) {
        mdot_gpu g = MDOT_INIT(mdot_gpu);
        mdot_gpu_find(*name, &g, NULL);
        char nvlink[16] = "", line[128];
        if (g.nvlink_gbps > 0) snprintf(nvlink, sizeof nvlink, "%g", g.nvlink_gbps);
        int used =
            snprintf(line, sizeof line, "%-17s %5g %6g %7g %7g %7g %4g %6s  %s", g.name, g.memory_gib, g.memory_gbps,
                     g.fp32_tflops, g.tf32_tflops, g.fp16_tflops, g.sm_count, nvlink, evidence_of(g.name));
        while (used > 0 && line[used - 1] == ' ') used--;
        printf("%.*s\n", used, line);
    }
}

static void print_json(void)
{
    enum { FIRST_LINE_COLUMNS = 6 };
    printf("{\"schema\": \"mdot-gpus/1\", \"gpus\": [");
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) {
        mdot_gpu g = MDOT_INIT(mdot_gpu);
        mdot_gpu_find(*name, &g, NULL);
        const char *evidence = evidence_of(g.name);
        cli_json_member(stdout, name == mdot_gpu_names() ? "\n  {" : ",\n  {", "name", g.name);
        int column = 0;
#define COLUMN(field, ...) printf("%s\"" #field "\": %g", column++ == FIRST_LINE_COLUMNS ? ",\n   " : ", ", g.field);
#include "runtime/job/gpus.def"
        printf(",\n   \"predictor\": \"%s\"}", *evidence != '\0' ? evidence : "neither");
    }
    printf("\n ]}\n");
}

static int run(int argc, char **argv)
{
    gpus_request request = {0};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_gpus_command, argc, argv, &request, &operands, &status)) return status;
    if (operands.count > 0) return cli_usage_error("gpus", "unexpected operand: the command takes only options");
    if (request.json)
        print_json();
    else
        print_table();
    return CLI_OK;
}

static const cli_option options[] = {
    CLI_JSON_OPTION(gpus_request, json, "print everything as JSON"),
};
const cli_command cli_gpus_command = {
    .name = "gpus",
    .summary = "list the GPUs that mdot predicts for, with their spec values",
    .synopsis = "[--json]",
    .description = "Lists the GPUs of mdot's table with the spec values that predictions use: memory, bandwidth, "
                   "dense rates with fp32 accumulation, and NVLink bandwidth in one direction. For other GPUs, pass "
                   "the spec values with `mdot predict --gpu-spec`. A slice of Multi-Instance GPU is GPU:SLICE, for "
                   "example A100:3g.20gb.",
    CLI_OPTIONS(options),
    .notes = "\"predictor\" shows the measurements behind the default predictor: training steps measured on "
             "the GPU (\"trained on\"), or only inference (\"inference\"). If the column is empty, predictions use "
             "the spec values only.",
    .run = run,
};
