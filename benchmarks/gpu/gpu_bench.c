/* gpu_bench.c — gpu_bench: the part of `gpu.sh run` that is written in C. It needs only libc and NVIDIA's driver.
 *
 *     gpu_bench machine                           GPU and driver
 *     gpu_bench latency  --artefact FILE           host to host, and the kernel's part
 *     gpu_bench batch    --artefact FILE           launches of many
 *
 * Options: --name NAME, the artefact's name in rows; --seconds S, the time for measurements; --rows FILE, a file to
 * append to.
 */
#include "benchmarks/gpu/gpu_bench.h"
#include "benchmarks/gpu/gpu_device.h"
#include "benchmarks/gpu/result_rows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name;
    mdot_status (*run)(const bench_options *options, FILE *out, mdot_error *err);
    bool takes_artefact;
} command;

static const command commands[] = {
    {"machine", bench_machine, false},
    {"latency", bench_latency, true},
    {"batch", bench_batch, true},
};

mdot_status bench_machine(const bench_options *options, FILE *out, mdot_error *err)
{
    (void)options;
    gpu_device c;
    mdot_status status = gpu_device_open(&c, err);
    if (status == MDOT_OK) {
        row_begin(out, "machine");
        row_text(out, "device", c.name);
        row_number(out, "compute_capability", c.major + 0.1 * c.minor);
        row_number(out, "multiprocessors", c.multiprocessors);
        row_number(out, "driver_cuda", c.driver_version / 1000 + 0.01 * (c.driver_version % 1000));
        row_text(out, "mdot", mdot_version());
        row_end(out);
    }
    gpu_device_close(&c);
    return status;
}

static int usage(const char *problem, const char *what)
{
    fprintf(stderr,
            "gpu_bench: %s%s\nusage: gpu_bench machine|latency|batch [--artefact FILE] [--name NAME] [--seconds S]\n"
            "                 [--rows FILE]\n",
            problem, what);
    return 2;
}

typedef struct arguments {
    const command *command;
    bench_options options;
    const char *rows;
} arguments;

/* Returns 0, or the exit status. */
static int parse(int argc, char **argv, arguments *a)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) a->command = &commands[i];
    if (a->command == NULL) return usage("unknown command ", argc > 1 ? argv[1] : "given");
    const char *seconds = NULL;
    const struct {
        const char *name;
        const char **value;
    } known[] = {
        {"--artefact", &a->options.artefact},
        {"--name", &a->options.name},
        {"--seconds", &seconds},
        {"--rows", &a->rows},
    };
    for (int i = 2; i < argc; i++) {
        const char **value = NULL;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (strcmp(argv[i], known[k].name) == 0) value = known[k].value;
        if (value == NULL || i + 1 == argc)
            return usage(value == NULL ? "unknown option " : "missing value of ", argv[i]);
        *value = argv[++i];
    }
    char *end = NULL;
    a->options.seconds = seconds != NULL ? strtod(seconds, &end) : 10;
    if (seconds != NULL && (end == seconds || *end != '\0' || !(a->options.seconds >= 0)))
        return usage("--seconds takes a number, not ", seconds);
    if (a->command->takes_artefact && a->options.artefact == NULL) return usage("--artefact is missing", "");
    if (a->options.name == NULL) a->options.name = a->options.artefact;
    return 0;
}

int main(int argc, char **argv)
{
    arguments a = {0};
    int wrong = parse(argc, argv, &a);
    if (wrong != 0) return wrong;
    /* non-blocking, because a named pipe would wait for its reader */
    int rows = a.rows != NULL ? open(a.rows, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666) : -1;
    FILE *out = a.rows == NULL ? stdout : rows >= 0 ? fdopen(rows, "a") : NULL;
    if (out == NULL) return fprintf(stderr, "gpu_bench: %s cannot be written\n", a.rows), 1;
    mdot_error err = {0};
    mdot_status status = a.command->run(&a.options, out, &err);
    if (status != MDOT_OK) fprintf(stderr, "gpu_bench %s: %s\n", a.command->name, err.message);
    if (out != stdout && fclose(out) != 0) return fprintf(stderr, "gpu_bench: %s cannot be written\n", a.rows), 1;
    return status == MDOT_OK ? 0 : 1;
}
