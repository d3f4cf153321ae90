/* device.c — selects a predictor's device: the one in the option or, for "auto", the faster one.
 *
 * Before a predictor is returned, every kernel on the device has run once. Therefore later calls are free of the
 * driver's loading time, and an artefact that fails on the device is detected here. */
#include "base/suggest.h"
#include "base/text.h"
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"
#include "runtime/core/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A GPU shared with training may answer late. After a second, a scheduler has to treat it as hung. */
enum { DEFAULT_TIMEOUT_MS = 1000 };

typedef enum choice { CHOOSE_AUTO, CHOOSE_CPU, CHOOSE_DEVICE } choice;

typedef struct wanted {
    choice choice;
    const rt_device_ops *ops; /* for CHOOSE_DEVICE */
    int ordinal;
} wanted;

/* Parses digits only, for example "12". */
static bool parse_ordinal(const char *text, int *out_ordinal)
{
    if (text[0] < '0' || text[0] > '9') return false;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || errno != 0 || value > INT32_MAX) return false;
    *out_ordinal = (int)value;
    return true;
}

/* Parses "cuda" or "cuda:12", where `name` is "cuda". */
static bool parse_name(const char *text, const char *name, int *out_ordinal)
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0) return false;
    if (text[length] == ':') return parse_ordinal(text + length + 1, out_ordinal);
    *out_ordinal = 0;
    return text[length] == '\0';
}

static mdot_status fail_unknown(const rt_components *components, const char *text, mdot_error *err)
{
    char known[256];
    bs_join list;
    bs_join_begin(&list, known, sizeof known);
    bs_join_add(&list, "auto");
    bs_join_add(&list, "cpu");
    bs_suggest near = bs_suggest_begin(text);
    bs_suggest_add(&near, "auto");
    bs_suggest_add(&near, "cpu");
    for (size_t i = 0; components->devices[i] != NULL; i++) {
        const char *name = components->devices[i]->name;
        bs_join_add(&list, "%s and %s:0, %s:1 …", name, name, name);
        bs_suggest_add(&near, name);
    }
    return BS_INVALID(err, "unknown device \"%s\"%s; known are %s", text, bs_suggest_end(&near).text, known);
}

static mdot_status parse_device(const rt_components *components, const char *text, wanted *out_wanted, mdot_error *err)
{
    wanted w = {.choice = CHOOSE_AUTO};
    if (text != NULL && strcmp(text, "cpu") == 0) {
        w.choice = CHOOSE_CPU;
    } else if (text != NULL && text[0] != '\0' && strcmp(text, "auto") != 0) {
        size_t i = 0;
        while (components->devices[i] != NULL && !parse_name(text, components->devices[i]->name, &w.ordinal)) i++;
        if (components->devices[i] == NULL) return fail_unknown(components, text, err);
        w.choice = CHOOSE_DEVICE;
        w.ops = components->devices[i];
    }
    *out_wanted = w;
    return MDOT_OK;
}

/* A context and tensors for any entry at any bucket's full length. Inputs are zeros, which every entry accepts. */
typedef struct trial {
    mdot_context *context;
    void *zeros;            /* used for all inputs */
    unsigned char *outputs; /* the outputs, concatenated */
} trial;

static void size_tensors(const mdot_abi_table *table, uint64_t *out_input_bytes, uint64_t *out_output_bytes)
{
    uint64_t most_input_bytes = 0, most_output_bytes = 0;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            int64_t length = rt_buckets(table, entry)[b].max_length;
            uint64_t output_bytes = 0;
            for (uint32_t i = 0; i < entry->input_count; i++) {
                uint64_t bytes = rt_tensor_bytes(&rt_inputs(table, entry)[i], length);
                if (bytes > most_input_bytes) most_input_bytes = bytes;
            }
            for (uint32_t i = 0; i < entry->output_count; i++)
                output_bytes += rt_tensor_bytes(&rt_outputs(table, entry)[i], length) + MDOT_ABI_ALIGNMENT;
            if (output_bytes > most_output_bytes) most_output_bytes = output_bytes;
        }
    }
    *out_input_bytes = most_input_bytes;
    *out_output_bytes = most_output_bytes;
}

static void close_trial(trial *t, const rt_allocator *allocator)
{
    rt_free(allocator, t->outputs);
    rt_free(allocator, t->zeros);
    mdot_context_destroy(t->context);
}

/* The failure of the trial context's device, or MDOT_OK. */
static mdot_status outcome(const trial *t, mdot_error *err)
{
    const mdot_error *failure = &t->context->device_error;
    return rt_fell_back(t->context) ? mdot_fail(err, failure->status, "%s", failure->message) : MDOT_OK;
}

static mdot_status open_trial(const mdot_predictor *predictor, trial *out_trial, mdot_error *err)
{
    uint64_t input_bytes, output_bytes;
    size_tensors(predictor->table, &input_bytes, &output_bytes);
    trial t = {0};
    mdot_status status = rt_context_create(predictor, &(mdot_context_options){.threads = 1}, &t.context, err);
    if (status == MDOT_OK) status = outcome(&t, err);
    if (status == MDOT_OK) {
        t.zeros = rt_alloc(&predictor->allocator, input_bytes);
        t.outputs = rt_alloc(&predictor->allocator, output_bytes);
        if (t.zeros == NULL || t.outputs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status != MDOT_OK) {
        close_trial(&t, &predictor->allocator);
        return status;
    }
    *out_trial = t;
    return MDOT_OK;
}

/* A call with `entry` at `length`, with pointers in the context's own arrays. */
static rt_item prepare_item(const trial *t, const mdot_abi_entry *entry, int64_t length)
{
    const mdot_abi_table *table = t->context->predictor->table;
    unsigned char *output = t->outputs;
    for (uint32_t i = 0; i < entry->input_count; i++) t->context->inputs[i] = t->zeros;
    for (uint32_t i = 0; i < entry->output_count; i++) {
        uint64_t bytes = rt_tensor_bytes(&rt_outputs(table, entry)[i], length);
        t->context->outputs[i] = output;
        output += (bytes + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
    }
    return (rt_item){t->context->inputs, t->context->outputs};
}

static mdot_status run_every_kernel(const trial *t, mdot_error *err)
{
    const mdot_abi_table *table = t->context->predictor->table;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            int64_t length = rt_buckets(table, entry)[b].max_length;
            rt_item item = prepare_item(t, entry, length);
            rt_run_many(t->context, entry, length, &item, 1);
        }
    }
    return outcome(t, err);
}

typedef void runner(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                    size_t count);

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The minimum of a few runs, because disturbances only make a run longer. One run suffices if it takes long. */
static double fastest_us(const trial *t, const mdot_abi_entry *entry, int64_t length, runner *run)
{
    enum { RUNS = 5, LONG_US = 20000 };
    rt_item item = prepare_item(t, entry, length);
    double fastest = INFINITY;
    for (int i = 0; i < RUNS && (i == 0 || fastest < LONG_US); i++) {
        double start = now_us();
        run(t->context, entry, length, &item, 1);
        fastest = fmin(fastest, now_us() - start);
    }
    return fastest;
}

/* One call with each entry at the middle bucket's full length. At the shortest length a GPU's launch dominates, and
 * jobs are rarely as long as the longest. */
static double measure_us(const trial *t, runner *run)
{
    const mdot_abi_table *table = t->context->predictor->table;
    double sum = 0;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        sum += fastest_us(t, entry, rt_buckets(table, entry)[entry->bucket_count / 2].max_length, run);
    }
    return sum;
}

/* Warms the device up and, unless `out_is_faster` is NULL, compares it with the CPU. */
static mdot_status try_out(mdot_predictor *predictor, bool *out_is_faster, mdot_error *err)
{
    trial t;
    BS_TRY(open_trial(predictor, &t, err));
    mdot_status status = run_every_kernel(&t, err);
    if (status == MDOT_OK && out_is_faster != NULL) {
        double device_us = measure_us(&t, rt_run_many), cpu_us = measure_us(&t, rt_run_on_cpu);
        status = outcome(&t, err);
        *out_is_faster = device_us < cpu_us;
        snprintf(predictor->device_reason, sizeof predictor->device_reason, "%s answers in %.0f us, the CPU in %.0f us",
                 predictor->device->id, device_us, cpu_us);
    }
    close_trial(&t, &predictor->allocator);
    return status;
}

/* Sets predictor->device. If `compare` is set, only a device that is faster than the CPU is used. */
static mdot_status open_device(mdot_predictor *predictor, const rt_device_ops *ops, int ordinal,
                               const mdot_open_options *options, bool compare, mdot_error *err)
{
    const rt_device_request request = {
        .artefact = &predictor->library->artefact,
        .ordinal = ordinal,
        .timeout_ms = options->device_timeout_ms > 0 ? options->device_timeout_ms : DEFAULT_TIMEOUT_MS,
        .kernel_precision = options->kernel_precision,
    };
    BS_TRY(ops->open(&request, &predictor->device, err));
    predictor->device_ops = ops;
    bool is_faster = true;
    mdot_status status = try_out(predictor, compare ? &is_faster : NULL, err);
    if (status != MDOT_OK || !is_faster) rt_device_close(predictor);
    return status;
}

static bool cpu_computes_in(const mdot_predictor *predictor, const char *kernel_precision)
{
    return kernel_precision == NULL ||
           strcmp(rt_string(predictor->table, predictor->image->compute_at), kernel_precision) == 0;
}

/* Tries the first device of each kind until one is faster than the CPU, provided that the CPU may answer. The reason
 * comes from the last device tried. */
static void choose(mdot_predictor *predictor, const mdot_open_options *options)
{
    const rt_device_ops *const *devices = predictor->components->devices;
    bool compare = cpu_computes_in(predictor, options->kernel_precision);
    snprintf(predictor->device_reason, sizeof predictor->device_reason, "this build supports only the CPU");
    for (size_t i = 0; devices[i] != NULL && predictor->device == NULL; i++) {
        mdot_error reason = {0};
        if (open_device(predictor, devices[i], 0, options, compare, &reason) != MDOT_OK)
            snprintf(predictor->device_reason, sizeof predictor->device_reason, "%s", reason.message);
        else if (!compare)
            snprintf(predictor->device_reason, sizeof predictor->device_reason,
                     "the artefact's code for this CPU lacks precision %s", options->kernel_precision);
    }
}

mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err)
{
    const char *device = options->device != NULL ? options->device : secure_getenv("MDOT_DEVICE");
    wanted w = {.choice = CHOOSE_AUTO};
    BS_TRY(parse_device(predictor->components, device, &w, err));
    snprintf(predictor->device_reason, sizeof predictor->device_reason, "requested by name");
    if (w.choice == CHOOSE_DEVICE) {
        predictor->device_is_required = true;
        mdot_error reason = {0};
        mdot_status status = open_device(predictor, w.ops, w.ordinal, options, false, &reason);
        return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "device %s: %s", device, reason.message);
    }
    if (w.choice == CHOOSE_AUTO) choose(predictor, options);
    if (predictor->device != NULL || cpu_computes_in(predictor, options->kernel_precision)) return MDOT_OK;
    return mdot_fail(
        err, MDOT_INCOMPATIBLE, "kernel_precision is %s, but the artefact's code for this CPU computes in %s (%s)",
        options->kernel_precision, rt_string(predictor->table, predictor->image->compute_at), predictor->device_reason);
}
