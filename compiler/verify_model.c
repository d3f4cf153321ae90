/* verify_model.c — mdotc_verify: compare an artefact's code with the reference evaluation of its model, on random or
 * given inputs.
 *
 * For each bucket, three lengths are tested: the full length, the shortest (one more than the previous bucket), and
 * one between. The reference is evaluated once per length and serves every CPU ISA level and the GPU, if there is
 * one.
 */
#include "base/out_of_memory.h"
#include "base/struct_version.h"
#include "base/suggest.h"
#include "base/text.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LENGTHS = 3, MAX_VARIANTS = MDOT_ABI_MAX_IMAGES + 1 + CG_COMPUTES };

/* Code that multiplies in 16 bits rounds the same factors as the rounding evaluator, but at other places: for
 * example, scales are folded into weights and results of matmuls stay rounded. Its error may therefore be this many
 * times as large. */
static const double rounding_margin = 4;
enum { HALF_TYPES = 2 };
static const mdot_dtype half_types[HALF_TYPES] = {MDOT_DTYPE_BF16, MDOT_DTYPE_F16};
static const char *const half_names[HALF_TYPES] = {"bf16", "fp16"}; /* names of an image's precisions */
/* Two factors, each off by half a spacing: every model has at least this error. */
static const double half_units[HALF_TYPES] = {0x1p-8, 0x1p-11};

/* ---- One length ------------------------------------------------------------------------------------------------- */

typedef struct code_variant { /* one per CPU image, and one per precision of the GPU */
    char name[64];            /* "x86-64-v4", "cuda:0"; followed by the precision unless it is the usual one */
    int half;                 /* index in half_types; -1: multiplies in f32 */
    mdot_predictor *predictor;
    mdot_context *context;
    mdotc_verify_row row; /* for the current bucket */
} code_variant;

typedef struct value_counts { /* counts of reference values in one output, over all lengths in a bucket */
    int64_t count, nan, infinite;
} value_counts;

typedef struct verification {
    const ir_graph *graph;
    const ir_graph *typed; /* a copy with the types of the current bucket */
    const mdotc_verify_options *options;
    double tolerance;
    size_t entry;
    mdot_entry_info info;
    int variant_count;
    code_variant variants[MAX_VARIANTS];
    co_verify_inputs *provided; /* NULL: inputs are random */
    size_t provided_count;
    value_counts *counts; /* one per output, for the current bucket */
    bool rounds[HALF_TYPES];
    double rounded[HALF_TYPES]; /* error of rounded matmuls in the current bucket */
    uint64_t random;
} verification;

static void count_values(value_counts *t, const ir_wide *expected)
{
    t->count += expected->count;
    for (int64_t i = 0; ir_dtype_is_float(expected->dtype) && i < expected->count; i++) {
        t->nan += isnan(expected->f[i]) != 0;
        t->infinite += isinf(expected->f[i]) != 0;
    }
}

static mdot_status run_variants(verification *v, int64_t length, const co_tensor *inputs, ir_wide *const *expected,
                                ir_arena *arena, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    co_tensor *outputs = IR_NEW_ARRAY(arena, co_tensor, v->info.output_count + 1);
    if (outputs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const char *failure;
    for (int l = 0; status == MDOT_OK && l < v->variant_count; l++) {
        code_variant *variant = &v->variants[l];
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
            status = mdot_predictor_get_output(variant->predictor, v->entry, i, &info);
            if (status == MDOT_OK) status = co_tensor_create(arena, &info, length, &outputs[i], err);
        }
        if (status == MDOT_OK)
            status = co_run(variant->context, v->entry, inputs, v->info.input_count, outputs, v->info.output_count,
                            arena, err);
        if (status == MDOT_OK && mdot_context_get_device_status(variant->context, &failure) != MDOT_OK)
            status =
                mdot_fail(err, MDOT_DEVICE, "%s failed at length %lld: %s", variant->name, (long long)length, failure);
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            co_difference d;
            status = co_compare(&outputs[i], expected[i], v->tolerance, v->tolerance, &d, err);
            if (d.scaled < variant->row.worst_error && variant->row.worst_length != 0) continue;
            variant->row.worst_error = d.scaled;
            variant->row.worst_length = length;
        }
    }
    return status;
}

/* Random integers are in the range of directly indexed tables. A model that computes indices from inputs, for example
 * from graph edges, may need real inputs. */
static mdot_status evaluate(const verification *v, const ir_wide *const *inputs, ir_arena *arena,
                            ir_wide **out_expected, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_status status = ir_evaluate(v->graph, inputs, arena, out_expected, &reason);
    if (status == MDOT_OUT_OF_RANGE && v->provided == NULL)
        return mdot_fail(err, status,
                         "%s; the random inputs are not valid for this model: give real ones with --inputs",
                         reason.message);
    if (status != MDOT_OK && err != NULL) *err = reason;
    return status;
}

/* Measures the error of rounding all matmul factors on these inputs. Infinite errors are ignored: the type
 * overflowed. */
static mdot_status measure_rounding(verification *v, const ir_wide *const *inputs, ir_wide *const *expected,
                                    ir_arena *arena, mdot_error *err)
{
    ir_wide **rounded = IR_NEW_ARRAY(arena, ir_wide *, v->info.output_count + 1);
    mdot_status status = rounded != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int h = 0; status == MDOT_OK && h < HALF_TYPES; h++) {
        if (!v->rounds[h]) continue;
        status = ir_evaluate_in(v->graph, half_types[h], inputs, arena, rounded, err);
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            double error = co_scaled_difference(rounded[i], expected[i]);
            if (isfinite(error)) v->rounded[h] = fmax(v->rounded[h], error);
        }
    }
    return status;
}

/* `provided` is NULL for random inputs. */
static mdot_status verify_length(verification *v, int64_t length, const co_verify_inputs *provided, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const ir_wide **wide = IR_NEW_ARRAY(arena, const ir_wide *, v->info.input_count + 1);
    ir_wide **expected = IR_NEW_ARRAY(arena, ir_wide *, v->info.output_count + 1);
    co_tensor *inputs = IR_NEW_ARRAY(arena, co_tensor, v->info.input_count + 1);
    mdot_status status = MDOT_OK;
    if (wide == NULL || expected == NULL || inputs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < v->info.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(v->variants[0].predictor, v->entry, i, &info);
        if (status == MDOT_OK) status = co_tensor_create(arena, &info, length, &inputs[i], err);
        if (status != MDOT_OK) break;
        wide[i] = provided != NULL ? ir_wide_from_tensor(arena, provided->tensors[i])
                                   : co_random_input(v->typed, (int)i, length, &inputs[i], &v->random, arena);
        const ir_tensor *stored = wide[i] != NULL ? ir_tensor_from_wide(arena, wide[i]) : NULL;
        if (stored != NULL)
            memcpy(inputs[i].data, stored->data, (size_t)stored->count * mdot_dtype_size_bytes(stored->dtype));
        else
            status = BS_OUT_OF_MEMORY(err, "input \"%s\"", info.name);
    }
    if (status == MDOT_OK) status = evaluate(v, wide, arena, expected, err);
    for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) count_values(&v->counts[i], expected[i]);
    if (status == MDOT_OK) status = measure_rounding(v, wide, expected, arena, err);
    if (status == MDOT_OK) status = run_variants(v, length, inputs, expected, arena, err);
    ir_arena_destroy(arena);
    return status;
}

/* ---- Buckets ---------------------------------------------------------------------------------------------------- */

static int choose_lengths(verification *v, int64_t shortest, int64_t longest, int64_t *out_lengths)
{
    int count = 0;
    out_lengths[count++] = longest;
    if (shortest < longest) out_lengths[count++] = shortest;
    if (longest - shortest > 1)
        out_lengths[count++] =
            shortest + 1 + (int64_t)(co_next_random(&v->random) % (uint64_t)(longest - shortest - 1));
    return count;
}

static void warn(const verification *v, const char *text)
{
    if (v->options->warning != NULL) v->options->warning(v->options->user, text);
}

/* NaN equals NaN, so an all-NaN output would agree with any wrong code that returns NaN. Such an output counts as
 * unverified, except on the caller's inputs: there NaN may be the result to verify. Returns whether every output is
 * verified. Warns if fewer values were compared than exist. */
static bool check_reference(const verification *v, int64_t longest)
{
    bool is_verified = true;
    for (size_t i = 0; i < v->info.output_count; i++) {
        const value_counts *t = &v->counts[i];
        bool is_all_nan = t->count > 0 && t->nan == t->count;
        if (t->nan + t->infinite == 0) continue;
        char text[512];
        snprintf(text, sizeof text,
                 "output \"%.200s\", bucket %lld: %lld of the model's %lld values are NaN, %lld infinite%s",
                 v->graph->outputs[i]->name, (long long)longest, (long long)t->nan, (long long)t->count,
                 (long long)t->infinite, is_all_nan ? "; the output has no finite value to verify" : "");
        warn(v, text);
        is_verified = is_verified && (!is_all_nan || v->options->inputs != NULL);
    }
    return is_verified;
}

static mdot_status type_bucket(verification *v, int64_t longest, ir_arena *arena, mdot_error *err)
{
    bool changed;
    ir_graph *typed = ir_graph_clone(v->graph, arena);
    if (typed == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (typed->symbol != NULL) typed->max_length = longest;
    typed->min_length = v->info.min_length;
    mdot_status status = ir_run_pass(typed, "infer", &changed, err);
    if (status == MDOT_OK) v->typed = typed;
    return status;
}

static bool holds(const co_verify_inputs *provided, int64_t shortest, int64_t longest)
{
    return provided->length == 0 || (shortest <= provided->length && provided->length <= longest);
}

/* Verifies random lengths of the bucket, or the given inputs whose length is in the bucket. */
static mdot_status verify_lengths(verification *v, int64_t shortest, int64_t longest, mdot_error *err)
{
    int64_t lengths[MAX_LENGTHS];
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < v->provided_count; i++)
        if (holds(&v->provided[i], shortest, longest))
            status = verify_length(v, v->provided[i].length, &v->provided[i], err);
    if (v->provided != NULL) return status;
    int count = choose_lengths(v, shortest, longest, lengths);
    for (int i = 0; i < count && status == MDOT_OK; i++) status = verify_length(v, lengths[i], NULL, err);
    return status;
}

static double bound_of(const verification *v, const code_variant *variant, double rounding)
{
    double bound = fmax(v->tolerance, rounding);
    if (variant->half < 0) return bound;
    return fmax(bound, fmax(half_units[variant->half], rounding_margin * v->rounded[variant->half]));
}

static mdot_status verify_bucket(verification *v, int64_t shortest, int64_t longest, bool *out_passed, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = type_bucket(v, longest, arena, err);
    for (int l = 0; l < v->variant_count; l++)
        v->variants[l].row = (mdotc_verify_row){.struct_size = sizeof(mdotc_verify_row),
                                                .entry = v->info.name,
                                                .level = v->variants[l].name,
                                                .max_length = longest};
    for (size_t i = 0; i < v->info.output_count; i++) v->counts[i] = (value_counts){0};
    for (int h = 0; h < HALF_TYPES; h++) v->rounded[h] = 0;
    if (status == MDOT_OK) status = verify_lengths(v, shortest, longest, err);
    double rounding = status == MDOT_OK ? co_rounding(v->typed) : 0;
    ir_arena_destroy(arena);
    if (status != MDOT_OK) return status;
    bool is_verified = check_reference(v, longest);
    for (int l = 0; l < v->variant_count; l++) {
        mdotc_verify_row *row = &v->variants[l].row;
        row->bound = bound_of(v, &v->variants[l], rounding);
        row->passed = is_verified && row->worst_error <= row->bound;
        *out_passed = *out_passed && row->passed;
        if (v->options->row != NULL) v->options->row(v->options->user, row);
    }
    return MDOT_OK;
}

static mdot_status verify_entry(verification *v, bool *out_passed, mdot_error *err)
{
    bool passed = true;
    int64_t shortest = v->info.min_length;
    for (size_t b = 0; b < v->info.bucket_count; b++) {
        mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
        mdot_status status = mdot_predictor_get_bucket(v->variants[0].predictor, v->entry, b, &bucket);
        bool is_tested = v->provided == NULL;
        for (size_t i = 0; i < v->provided_count; i++)
            is_tested = is_tested || holds(&v->provided[i], shortest, bucket.max_length);
        if (status == MDOT_OK && is_tested) status = verify_bucket(v, shortest, bucket.max_length, &passed, err);
        if (status != MDOT_OK) return status;
        shortest = bucket.max_length + 1;
    }
    *out_passed = passed;
    return MDOT_OK;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static mdot_status add_variant(verification *v, const char *path, const mdot_open_options *options, mdot_error *err)
{
    code_variant *variant = &v->variants[v->variant_count];
    mdot_status status = mdot_predictor_open(path, options, &variant->predictor, err);
    if (status != MDOT_OK) return status;
    v->variant_count++;
    mdot_predictor_info opened = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(variant->predictor, &opened);
    bool on_cpu = strcmp(opened.device, "cpu") == 0, rounds = strcmp(opened.device_kernel_precision, "fp32") != 0;
    bool is_usual = on_cpu ? !rounds : options->kernel_precision == NULL;
    snprintf(variant->name, sizeof variant->name, "%s%s%s", on_cpu ? opened.cpu_isa : opened.device,
             is_usual ? "" : " ", is_usual ? "" : opened.device_kernel_precision);
    variant->half = -1;
    for (int h = 0; rounds && h < HALF_TYPES; h++)
        if (strcmp(opened.device_kernel_precision, half_names[h]) == 0) variant->half = h;
    if (variant->half >= 0) v->rounds[variant->half] = true;
    return mdot_context_create(variant->predictor, &variant->context, err);
}

/* Most machines lack a suitable GPU, so a missing GPU only causes a warning about unverified code. */
static mdot_status add_gpu(verification *v, const char *path, const char *kernel_precision, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_open_options options = {.struct_size = sizeof options, .device = "cuda", .kernel_precision = kernel_precision};
    mdot_status status = add_variant(v, path, &options, &reason);
    if (status == MDOT_INCOMPATIBLE && kernel_precision != NULL)
        return MDOT_OK; /* only other architectures have code in this
                                                                         * precision */
    if (status != MDOT_DEVICE) {
        if (status != MDOT_OK && err != NULL) *err = reason;
        return status;
    }
    char text[sizeof reason.message + 64];
    snprintf(text, sizeof text, "the CUDA code is not verified: %s", reason.message);
    warn(v, text);
    return MDOT_OK;
}

/* Verifies the predictor's own choice on the GPU, and then each further precision of the targets once. */
static mdot_status add_gpus(verification *v, const char *path, const mdot_predictor *opened, size_t first,
                            mdot_error *err)
{
    mdot_image_info image = MDOT_INIT(mdot_image_info), before = MDOT_INIT(mdot_image_info);
    mdot_status status = add_gpu(v, path, NULL, err);
    const char *done[CG_COMPUTES];
    size_t done_count = 0;
    for (size_t i = first; status == MDOT_OK && mdot_predictor_get_image(opened, i, &image) == MDOT_OK; i++) {
        bool is_other = i > first && strcmp(image.target, before.target) == 0;
        for (size_t k = 0; k < done_count; k++) is_other = is_other && strcmp(done[k], image.kernel_precision) != 0;
        before = image;
        if (!is_other || done_count == CG_COMPUTES) continue;
        done[done_count++] = image.kernel_precision;
        status = add_gpu(v, path, image.kernel_precision, err);
    }
    return status;
}

/* Opens the artefact once for each image for this machine's CPU, and on the first supported GPU. */
static mdot_status open_variants(verification *v, const char *path, mdot_error *err)
{
    mdot_predictor *best;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_status status = mdot_predictor_open(
        path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cpu"}, &best, err);
    if (status != MDOT_OK) return status;
    mdot_predictor_get_info(best, &info);
    size_t i = 0;
    for (; status == MDOT_OK && i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        status = mdot_predictor_get_image(best, i, &image);
        if (status != MDOT_OK || strcmp(image.kind, "cpu") != 0) break;
        mdot_open_options options = {.struct_size = sizeof options,
                                     .cpu_isa = image.target,
                                     .device = "cpu",
                                     .kernel_precision = image.kernel_precision};
        status = add_variant(v, path, &options, err);
        if (status == MDOT_INCOMPATIBLE) status = MDOT_OK; /* an ISA level that this machine lacks */
    }
    if (status == MDOT_OK && i < info.image_count) status = add_gpus(v, path, best, i, err);
    mdot_predictor_close(best);
    return status;
}

static mdot_status no_entry(const mdot_predictor *predictor, const char *path, const char *name, mdot_error *err)
{
    char known[256];
    bs_join list;
    bs_join_begin(&list, known, sizeof known);
    bs_suggest suggestion = bs_suggest_begin(name);
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    for (size_t i = 0; mdot_predictor_get_entry(predictor, i, &entry) == MDOT_OK; i++) {
        bs_join_add(&list, "%s", entry.name);
        bs_suggest_add(&suggestion, entry.name);
    }
    return mdot_fail(err, MDOT_NOT_FOUND, "%s: unknown entry point \"%s\"%s; the artefact has %s", path, name,
                     bs_suggest_end(&suggestion).text, known);
}

static mdot_status find_entry(verification *v, const char *artefact_path, mdot_error *err)
{
    const mdot_predictor *predictor = v->variants[0].predictor;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    const char *name = v->options->entry != NULL ? v->options->entry : "predict";
    if (v->options->entry == NULL && info.entry_count == 1) {
        v->entry = 0;
    } else if (mdot_predictor_find_entry(predictor, name, &v->entry) != MDOT_OK) {
        return no_entry(predictor, artefact_path, name, err);
    }
    return mdot_predictor_get_entry(predictor, v->entry, &v->info);
}

static bool is_same_input(const mdot_tensor_info *info, const ir_value *input)
{
    const ir_type *type = &input->type;
    if (strcmp(info->name, input->name) != 0 || info->dtype != type->dtype || info->rank != type->rank) return false;
    for (int i = 0; i < type->rank; i++)
        if (info->dim[i].scale != type->dim[i].scale || info->dim[i].offset != type->dim[i].offset) return false;
    return true;
}

static mdot_status check_schema(const verification *v, const char *model_path, mdot_error *err)
{
    bool is_same =
        (size_t)v->graph->input_count == v->info.input_count && (size_t)v->graph->output_count == v->info.output_count;
    for (size_t i = 0; is_same && i < v->info.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_input(v->variants[0].predictor, v->entry, i, &info) != MDOT_OK) return MDOT_OUT_OF_RANGE;
        is_same = is_same_input(&info, v->graph->inputs[i]);
    }
    for (size_t i = 0; is_same && i < v->info.output_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_output(v->variants[0].predictor, v->entry, i, &info) != MDOT_OK)
            return MDOT_OUT_OF_RANGE;
        is_same = strcmp(info.name, v->graph->outputs[i]->name) == 0;
    }
    if (is_same) return MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "%s: the inputs and outputs of the model differ from those of entry point \"%s\"", model_path,
                     v->info.name);
}

/* Reads the given inputs. Lengths must lie within the entry's buckets. */
static mdot_status read_given(verification *v, ir_arena *arena, mdot_error *err)
{
    const mdotc_verify_options *o = v->options;
    v->provided_count = o->inputs != NULL ? 1 : o->job_count;
    if (v->provided_count == 0) return MDOT_OK;
    v->provided = IR_NEW_ARRAY(arena, co_verify_inputs, v->provided_count);
    if (v->provided == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = o->inputs != NULL
                             ? co_verify_inputs_in_folder(v->graph, o->inputs, arena, v->provided, err)
                             : co_verify_inputs_of_jobs(v->graph, v->variants[0].context, v->entry, o->jobs,
                                                        o->configurations, o->job_count, arena, v->provided, err);
    mdot_bucket_info end = MDOT_INIT(mdot_bucket_info);
    if (status == MDOT_OK)
        status = mdot_predictor_get_bucket(v->variants[0].predictor, v->entry, v->info.bucket_count - 1, &end);
    for (size_t i = 0; status == MDOT_OK && i < v->provided_count; i++)
        if (!holds(&v->provided[i], v->info.min_length, end.max_length))
            status = mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: the length %lld exceeds every bucket",
                               o->inputs != NULL ? o->inputs : v->info.name, (long long)v->provided[i].length);
    return status;
}

static mdot_status import_model(verification *v, const char *path, ir_arena *arena, mdot_error *err)
{
    fe_options options = {.bindings = v->options->dims, .binding_count = v->options->dim_count};
    ir_graph *graph;
    mdot_status status = fe_import(path, &options, arena, &graph, err);
    if (status == MDOT_OK) status = ir_check_supported(graph, err);
    if (status == MDOT_OK) v->graph = graph;
    return status;
}

static mdot_status check_options(const mdotc_verify_options *o, mdot_error *err)
{
    if (o->job_count > 0 && o->inputs != NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a folder of inputs and jobs exclude each other");
    if (o->job_count > 0 && (o->jobs == NULL || o->configurations == NULL))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "job_count is %zu, but jobs or configurations is NULL",
                         o->job_count);
    return MDOT_OK;
}

static const bs_struct_version options_type = BS_SIZED(mdotc_verify_options, user);

mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err)
{
    mdotc_verify_options o = {0};
    mdot_status status = options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK;
    if (status != MDOT_OK) return status;
    if (artefact_path == NULL || model_path == NULL || out_passed == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdotc_verify requires an artefact, a model and an output parameter for the result");
    status = co_check_tolerance("tolerance", o.tolerance, err);
    if (status == MDOT_OK) status = check_options(&o, err);
    if (status != MDOT_OK) return status;
    verification v = {.options = &o, .info = MDOT_INIT(mdot_entry_info)};
    v.tolerance = v.options->tolerance > 0 ? v.options->tolerance : 1e-4;
    v.random = v.options->seed;
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);

    status = import_model(&v, model_path, arena, err);
    if (status == MDOT_OK) status = open_variants(&v, artefact_path, err);
    if (status == MDOT_OK) status = find_entry(&v, artefact_path, err);
    if (status == MDOT_OK) status = check_schema(&v, model_path, err);
    if (status == MDOT_OK) status = read_given(&v, arena, err);
    if (status == MDOT_OK) {
        v.counts = IR_NEW_ARRAY(arena, value_counts, v.info.output_count + 1);
        if (v.counts == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = verify_entry(&v, out_passed, err);

    for (int l = 0; l < v.variant_count; l++) {
        mdot_context_destroy(v.variants[l].context);
        mdot_predictor_close(v.variants[l].predictor);
    }
    ir_arena_destroy(arena);
    return status;
}
