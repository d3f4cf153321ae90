/* gpu_check.c — compares the GPU with the CPU: every entry and bucket in an artefact at full and partial lengths,
 * alone and in batches, on different inputs each time. `benchmarks/gpu.sh run` starts it, on a machine with a GPU.
 *
 *     gpu_check --artefact FILE [--name NAME] [--rows FILE] [--quick]
 *
 * NAME is the artefact's name in rows, which are appended to FILE. --quick takes full lengths and few items, for
 * sanitizers. The exit status is 1 if an answer is wrong. It needs only libc and NVIDIA's driver.
 *
 * Both run the artefact's code for the same model, the CPU in fp32. Errors are relative to an output's greatest value
 * over sixteen inputs, because the values for a single input may all be near zero. The limits are the emulator's limits
 * for generated kernels (tests/cuda_host). */
#include "benchmarks/gpu/result_rows.h"
#include "benchmarks/gpu/subject.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#define LIMIT_FP32 1e-5
#define LIMIT_ROUNDED 1e-2 /* bf16 and fp16 operands */
/* Limit relative to the answers' spread over sixteen inputs. Answers that hardly depend on the inputs pass the limits
 * above even if the GPU is wrong. Answers unrelated to the inputs have an error of about 1 by this measure. */
#define LIMIT_OF_SPREAD 0.25
enum { SCALE_ITEMS = 16, MOST_ITEMS = 64, MOST_LENGTHS = 8, REPEATS = 100 };

/* ---- Differences between batches --------------------------------------------------------------------------------- */

/* Scales for differences in an output: the greatest float in any item, and the floats' spread between items. 1 for an
 * output without floats. False if a float is infinite or NaN. */
typedef struct scales {
    double greatest[MDOT_ABI_CUDA_MAX_TENSORS], spread[MDOT_ABI_CUDA_MAX_TENSORS];
} scales;

static bool is_float(const mdot_abi_tensor *tensor)
{
    return tensor->dtype == MDOT_DTYPE_F32 || tensor->dtype == MDOT_DTYPE_F64;
}

static double element(const mdot_abi_tensor *tensor, const void *data, uint64_t i)
{
    return tensor->dtype == MDOT_DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void add_item(const mdot_abi_tensor *tensor, int64_t length, const void *data, double *minimum, double *maximum)
{
    for (uint64_t i = 0; is_float(tensor) && i < rt_element_count(tensor, length); i++) {
        *minimum = fmin(*minimum, element(tensor, data, i));
        *maximum = fmax(*maximum, element(tensor, data, i));
    }
}

static bool scales_of(const batch *b, scales *out_scales)
{
    const mdot_abi_tensor *outputs = rt_outputs(b->table, b->entry);
    for (uint32_t o = 0; o < b->entry->output_count; o++) {
        double minimum = INFINITY, maximum = -INFINITY;
        for (size_t item = 0; item < b->count; item++)
            add_item(&outputs[o], b->length, b->items[item].outputs[o], &minimum, &maximum);
        double greatest = fmax(fabs(minimum), fabs(maximum)), spread = maximum - minimum;
        if (is_float(&outputs[o]) && !(isfinite(greatest) && isfinite(spread))) return false;
        out_scales->greatest[o] = greatest > 0 ? greatest : 1;
        out_scales->spread[o] = spread > 0 ? spread : 1;
    }
    return true;
}

static double tensor_difference(const mdot_abi_tensor *tensor, int64_t length, const void *got, const void *wanted)
{
    if (!is_float(tensor)) return memcmp(got, wanted, rt_tensor_bytes(tensor, length)) == 0 ? 0 : INFINITY;
    double greatest = 0;
    for (uint64_t i = 0; i < rt_element_count(tensor, length); i++) {
        double g = element(tensor, got, i), w = element(tensor, wanted, i);
        if (!isfinite(g) || !isfinite(w)) return INFINITY;
        greatest = fmax(greatest, fabs(g - w));
    }
    return greatest;
}

/* Returns the greatest difference between any outputs of two batches, relative to the scales. Infinite if a float is
 * infinite or NaN, or if integers or booleans differ. */
typedef struct difference {
    double of_greatest, of_spread;
} difference;

static difference difference_of(const batch *got, const batch *wanted, const scales *scale)
{
    const mdot_abi_tensor *outputs = rt_outputs(got->table, got->entry);
    difference d = {0};
    for (size_t item = 0; item < got->count; item++)
        for (uint32_t o = 0; o < got->entry->output_count; o++) {
            double absolute = tensor_difference(&outputs[o], got->length, got->items[item].outputs[o],
                                                wanted->items[item].outputs[o]);
            d.of_greatest = fmax(d.of_greatest, absolute / scale->greatest[o]);
            d.of_spread = fmax(d.of_spread, absolute / scale->spread[o]);
        }
    return d;
}

/* ---- The check --------------------------------------------------------------------------------------------------- */

typedef struct check {
    subject s;
    const char *artefact, *name;
    bool is_quick;
    FILE *out;
    double limit;
    uint64_t seed;
    size_t cases, failed;
} check;

typedef struct check_case {
    const mdot_abi_entry *entry;
    int64_t max_length, length;
    size_t items;
    scales scale;
} check_case;

/* Fills the outputs with NaN and other values that a run never produces. */
static void poison(batch *b) { memset(b->outputs, 0xFF, b->output_bytes); }

/* The same inputs must give the same bits each time. Kernels sum in a fixed order, so a difference means a race. */
static bool is_repeatable(check *k, const check_case *c, batch *got)
{
    batch first = {0};
    bool is_made = batch_make(&first, k->s.table, c->entry, c->length, c->items, 0);
    if (is_made) memcpy(first.outputs, got->outputs, got->output_bytes);
    for (int i = 0; i < REPEATS && is_made; i++) {
        poison(got);
        rt_run_many(k->s.gpu_context, c->entry, c->length, got->items, c->items);
        is_made = memcmp(got->outputs, first.outputs, got->output_bytes) == 0;
    }
    batch_free(&first);
    return is_made;
}

static void write_case(const check *k, const check_case *c, const difference *d, bool is_same, bool is_right)
{
    row_begin(k->out, "check");
    row_text(k->out, "artefact", k->name);
    row_text(k->out, "kernel_precision", k->s.info.device_kernel_precision);
    row_text(k->out, "entry", rt_string(k->s.table, c->entry->name_at));
    row_number(k->out, "bucket", (double)c->max_length);
    row_number(k->out, "length", (double)c->length);
    row_number(k->out, "items", (double)c->items);
    row_number(k->out, "error", d->of_greatest);
    row_number(k->out, "limit", k->limit);
    row_number(k->out, "of_spread", d->of_spread);
    row_bool(k->out, "repeatable", is_same);
    row_bool(k->out, "right", is_right);
    row_end(k->out);
}

static mdot_status run_case(check *k, const check_case *c, mdot_error *err)
{
    batch got = {0}, wanted = {0};
    k->seed++;
    mdot_status status = MDOT_OK;
    if (!batch_make(&got, k->s.table, c->entry, c->length, c->items, k->seed) ||
        !batch_make(&wanted, k->s.table, c->entry, c->length, c->items, k->seed)) {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        goto done;
    }
    rt_run_on_cpu(k->s.cpu_context, c->entry, c->length, wanted.items, c->items);
    poison(&got);
    rt_run_many(k->s.gpu_context, c->entry, c->length, got.items, c->items);
    difference d = difference_of(&got, &wanted, &c->scale);
    bool repeat = c->items == 1 && c->length == c->max_length && !k->is_quick;
    bool is_same = !repeat || is_repeatable(k, c, &got);
    bool is_right = d.of_greatest < k->limit && d.of_spread < LIMIT_OF_SPREAD && is_same;
    write_case(k, c, &d, is_same, is_right);
    k->cases++;
    k->failed += !is_right;
    status = subject_check(&k->s, err);
done:
    batch_free(&got);
    batch_free(&wanted);
    return status;
}

static void add_length(int64_t length, int64_t minimum, int64_t maximum, int64_t *lengths, int *count)
{
    if (length < minimum || length > maximum) return;
    for (int i = 0; i < *count; i++)
        if (lengths[i] == length) return;
    lengths[(*count)++] = length;
}

/* Chooses both ends of the bucket range, and tile ends. */
static int choose_lengths(const check *k, int64_t minimum, int64_t maximum, int64_t lengths[MOST_LENGTHS])
{
    int count = 0;
    add_length(maximum, minimum, maximum, lengths, &count);
    if (k->is_quick) return count;
    const int64_t others[] = {minimum, minimum + 1, 15, 16, 17, maximum - 15, maximum - 1};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        add_length(others[i], minimum, maximum, lengths, &count);
    return count;
}

static mdot_status find_scale(check *k, check_case *c, mdot_error *err)
{
    batch b;
    if (!batch_make(&b, k->s.table, c->entry, c->max_length, SCALE_ITEMS, ++k->seed))
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    rt_run_on_cpu(k->s.cpu_context, c->entry, c->max_length, b.items, b.count);
    bool is_finite = scales_of(&b, &c->scale);
    batch_free(&b);
    if (is_finite) return MDOT_OK;
    return mdot_fail(err, MDOT_UNSUPPORTED, "%s: outputs for synthetic inputs are not finite", k->artefact);
}

static mdot_status check_bucket(check *k, const mdot_abi_entry *entry, int64_t minimum, int64_t maximum,
                                mdot_error *err)
{
    check_case c = {.entry = entry, .max_length = maximum};
    int64_t lengths[MOST_LENGTHS];
    int count = choose_lengths(k, minimum, maximum, lengths);
    mdot_status status = find_scale(k, &c, err);
    for (int i = 0; i < count && status == MDOT_OK; i++) {
        const size_t items[] = {1, 3, MOST_ITEMS + 1};
        size_t kinds = k->is_quick ? 2 : i < 2 ? 3 : 1; /* many items only for the longest and the shortest */
        for (size_t j = 0; j < kinds && status == MDOT_OK; j++) {
            c.length = lengths[i];
            c.items = items[j];
            status = run_case(k, &c, err);
        }
    }
    return status;
}

static mdot_status run_check(check *k, mdot_error *err)
{
    mdot_status status = subject_open(&k->s, k->artefact, err);
    if (status == MDOT_OK)
        k->limit = strcmp(k->s.info.device_kernel_precision, "fp32") == 0 ? LIMIT_FP32 : LIMIT_ROUNDED;
    for (uint32_t e = 0; status == MDOT_OK && e < k->s.table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(k->s.table, e);
        const mdot_abi_bucket *buckets = rt_buckets(k->s.table, entry);
        for (uint32_t b = 0; b < entry->bucket_count && status == MDOT_OK; b++) {
            int64_t minimum = b > 0 ? buckets[b - 1].max_length + 1 : entry->least_length;
            status = check_bucket(k, entry, minimum, buckets[b].max_length, err);
        }
    }
    if (status == MDOT_OK && k->failed > 0)
        status = mdot_fail(err, MDOT_DEVICE, "%zu of %zu cases have wrong results", k->failed, k->cases);
    if (status == MDOT_OK) fprintf(stderr, "%s: %zu cases are right\n", k->name, k->cases);
    subject_close(&k->s);
    return status;
}

int main(int argc, char **argv)
{
    check k = {.out = stdout};
    const char *rows = NULL;
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--artefact") == 0 ? &k.artefact
                             : strcmp(argv[i], "--name") == 0   ? &k.name
                             : strcmp(argv[i], "--rows") == 0   ? &rows
                                                                : NULL;
        if (strcmp(argv[i], "--quick") == 0)
            k.is_quick = true;
        else if (value == NULL || i + 1 == argc)
            return fprintf(stderr, "gpu_check: unknown option, or missing value: %s\n", argv[i]), 2;
        else
            *value = argv[++i];
    }
    if (k.artefact == NULL) return fprintf(stderr, "gpu_check: --artefact is missing\n"), 2;
    if (k.name == NULL) k.name = k.artefact;
    if (rows != NULL) {
        int file = open(rows, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
        k.out = file >= 0 ? fdopen(file, "a") : NULL;
        if (k.out == NULL) return fprintf(stderr, "gpu_check: %s cannot be written\n", rows), 1;
    }
    mdot_error err = {0};
    mdot_status status = run_check(&k, &err);
    if (status != MDOT_OK) fprintf(stderr, "gpu_check: %s\n", err.message);
    if (fclose(k.out) != 0) return fprintf(stderr, "gpu_check: %s cannot be written\n", rows), 1;
    return status == MDOT_OK ? 0 : 1;
}
