/* verify.c — mdotc_verify: an artefact's code against the reference evaluation of its model, on random inputs.
 *
 * For each bucket: full length, one more than the bucket before (the shortest that lands here) and one between. The
 * reference is evaluated once a length and serves every CPU level, and the GPU where there is one.
 */
#include "base/sized.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LENGTHS = 3, MAX_LEVELS = MDOT_ABI_MAX_IMAGES + 1 + CG_COMPUTES };

/* What rounding the operands of every matrix product to 8 or 11 bits may cost an encoder's output. */
static const double reduced_tolerance = 1e-2;

/* ---- One length ------------------------------------------------------------------------------------------------- */

typedef struct level_state { /* the CPU's images, and a GPU in each arithmetic */
    char name[64];           /* "x86-64-v4", "cuda:0"; with the arithmetic where it is not the usual one */
    double tolerance;
    mdot_predictor *predictor;
    mdot_context *context;
    mdotc_verify_row row; /* of the bucket at hand */
} level_state;

typedef struct tally { /* of the reference's values of one output, at all lengths of a bucket */
    int64_t count, nan, infinite;
} tally;

typedef struct verification {
    const ir_graph *graph;
    const ir_graph *typed; /* a copy with the types of the bucket at hand */
    const mdotc_verify_options *options;
    double tolerance;
    size_t entry;
    mdot_entry_info info;
    int level_count;
    level_state levels[MAX_LEVELS];
    const ir_tensor *const *given; /* by input; NULL: inputs are random */
    int64_t given_length;          /* at which they are; 0: the entry has no length */
    tally *tallies;                /* by output, of the bucket at hand */
    uint64_t random;
} verification;

static void count_values(tally *t, const ir_wide *want)
{
    t->count += want->count;
    for (int64_t i = 0; ir_dtype_is_float(want->dtype) && i < want->count; i++) {
        t->nan += isnan(want->f[i]) != 0;
        t->infinite += isinf(want->f[i]) != 0;
    }
}

static mdot_status run_levels(verification *v, int64_t length, const co_tensor *inputs, ir_wide *const *want,
                              ir_arena *arena, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    co_tensor *outputs = IR_NEW_ARRAY(arena, co_tensor, v->info.output_count + 1);
    if (outputs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    const char *failure;
    for (int l = 0; status == MDOT_OK && l < v->level_count; l++) {
        level_state *level = &v->levels[l];
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
            status = mdot_predictor_get_output(level->predictor, v->entry, i, &info);
            if (status == MDOT_OK) status = co_tensor_create(arena, &info, length, &outputs[i], err);
        }
        if (status == MDOT_OK)
            status = co_run(level->context, v->entry, inputs, v->info.input_count, outputs, v->info.output_count, arena,
                            err);
        if (status == MDOT_OK && mdot_context_get_device_status(level->context, &failure) != MDOT_OK)
            status =
                mdot_fail(err, MDOT_DEVICE, "%s failed at length %lld: %s", level->name, (long long)length, failure);
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            co_difference d;
            status = co_compare(&outputs[i], want[i], v->tolerance, v->tolerance, &d, err);
            if (d.scaled < level->row.worst_error && level->row.worst_length != 0) continue;
            level->row.worst_error = d.scaled;
            level->row.worst_length = length;
        }
    }
    return status;
}

static mdot_status verify_length(verification *v, int64_t length, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    const ir_wide **wide = IR_NEW_ARRAY(arena, const ir_wide *, v->info.input_count + 1);
    ir_wide **want = IR_NEW_ARRAY(arena, ir_wide *, v->info.output_count + 1);
    co_tensor *inputs = IR_NEW_ARRAY(arena, co_tensor, v->info.input_count + 1);
    mdot_status status = MDOT_OK;
    if (wide == NULL || want == NULL || inputs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (size_t i = 0; status == MDOT_OK && i < v->info.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(v->levels[0].predictor, v->entry, i, &info);
        if (status == MDOT_OK) status = co_tensor_create(arena, &info, length, &inputs[i], err);
        if (status != MDOT_OK) break;
        wide[i] = v->given != NULL ? ir_wide_from_tensor(arena, v->given[i])
                                   : co_random_input(v->typed, (int)i, length, &inputs[i], &v->random, arena);
        const ir_tensor *stored = wide[i] != NULL ? ir_tensor_from_wide(arena, wide[i]) : NULL;
        if (stored != NULL)
            memcpy(inputs[i].data, stored->data, (size_t)stored->count * mdot_dtype_size_bytes(stored->dtype));
        else
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for input \"%s\"", info.name);
    }
    if (status == MDOT_OK) status = ir_evaluate(v->graph, wide, arena, want, err);
    for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) count_values(&v->tallies[i], want[i]);
    if (status == MDOT_OK) status = run_levels(v, length, inputs, want, arena, err);
    ir_arena_destroy(arena);
    return status;
}

/* ---- Buckets ---------------------------------------------------------------------------------------------------- */

static int choose_lengths(verification *v, int64_t shortest, int64_t longest, int64_t *out_lengths)
{
    int count = 0;
    if (v->given != NULL) {
        out_lengths[0] = v->given_length;
        return 1;
    }
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

/* NaN agrees with NaN, so that an output that is nothing else agrees with any code that loses itself: it has not been
 * verified. Returns whether every output has; tells where fewer values were compared than there are. */
static bool judge_reference(const verification *v, int64_t longest)
{
    bool is_verified = true;
    for (size_t i = 0; i < v->info.output_count; i++) {
        const tally *t = &v->tallies[i];
        bool is_nothing = t->count > 0 && t->nan == t->count;
        if (t->nan + t->infinite == 0) continue;
        char text[512];
        snprintf(text, sizeof text,
                 "output \"%.200s\", bucket %lld: %lld of the model's %lld values are NaN, %lld infinite%s",
                 v->graph->outputs[i]->name, (long long)longest, (long long)t->nan, (long long)t->count,
                 (long long)t->infinite, is_nothing ? "; nothing is left to verify" : "");
        warn(v, text);
        is_verified = is_verified && !is_nothing;
    }
    return is_verified;
}

static mdot_status type_bucket(verification *v, int64_t longest, ir_arena *arena, mdot_error *err)
{
    bool changed;
    ir_graph *typed = ir_graph_clone(v->graph, arena);
    if (typed == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    if (typed->symbol != NULL) typed->max_length = longest;
    typed->min_length = v->info.min_length;
    mdot_status status = ir_run_pass(typed, "infer", &changed, err);
    if (status == MDOT_OK) v->typed = typed;
    return status;
}

static mdot_status verify_bucket(verification *v, int64_t shortest, int64_t longest, bool *out_passed, mdot_error *err)
{
    int64_t lengths[MAX_LENGTHS];
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    mdot_status status = type_bucket(v, longest, arena, err);
    int count = choose_lengths(v, shortest, longest, lengths);
    for (int l = 0; l < v->level_count; l++)
        v->levels[l].row = (mdotc_verify_row){.struct_size = sizeof(mdotc_verify_row),
                                              .entry = v->info.name,
                                              .level = v->levels[l].name,
                                              .max_length = longest};
    for (size_t i = 0; i < v->info.output_count; i++) v->tallies[i] = (tally){0};
    for (int i = 0; i < count && status == MDOT_OK; i++) status = verify_length(v, lengths[i], err);
    double rounding = status == MDOT_OK ? co_rounding(v->typed) : 0;
    ir_arena_destroy(arena);
    if (status != MDOT_OK) return status;
    bool is_verified = judge_reference(v, longest);
    for (int l = 0; l < v->level_count; l++) {
        mdotc_verify_row *row = &v->levels[l].row;
        row->bound = fmax(v->levels[l].tolerance, rounding);
        row->passed = is_verified && row->worst_error <= row->bound;
        *out_passed = *out_passed && row->passed;
        if (v->options->row != NULL) v->options->row(v->options->user, row);
    }
    return MDOT_OK;
}

static mdot_status verify_entry(verification *v, bool *out_passed, mdot_error *err)
{
    bool passed = true, verified = false;
    int64_t shortest = v->info.min_length;
    for (size_t b = 0; b < v->info.bucket_count; b++) {
        mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
        mdot_status status = mdot_predictor_get_bucket(v->levels[0].predictor, v->entry, b, &bucket);
        bool holds = v->given == NULL || (shortest <= v->given_length && v->given_length <= bucket.max_length);
        if (status == MDOT_OK && holds) status = verify_bucket(v, shortest, bucket.max_length, &passed, err);
        verified = verified || holds;
        if (status != MDOT_OK) return status;
        shortest = bucket.max_length + 1;
    }
    if (!verified)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: no bucket holds a length of %lld", v->options->inputs,
                         (long long)v->given_length);
    *out_passed = passed;
    return MDOT_OK;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static mdot_status add_level(verification *v, const char *path, const mdot_open_options *options, mdot_error *err)
{
    level_state *level = &v->levels[v->level_count];
    mdot_status status = mdot_predictor_open(path, options, &level->predictor, err);
    if (status != MDOT_OK) return status;
    v->level_count++;
    mdot_predictor_info opened = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(level->predictor, &opened);
    bool on_cpu = strcmp(opened.device, "cpu") == 0, rounds = strcmp(opened.device_compute, "fp32") != 0;
    bool is_usual = on_cpu ? !rounds : options->compute == NULL;
    snprintf(level->name, sizeof level->name, "%s%s%s", on_cpu ? opened.cpu_level : opened.device, is_usual ? "" : " ",
             is_usual ? "" : opened.device_compute);
    level->tolerance = rounds && v->tolerance < reduced_tolerance ? reduced_tolerance : v->tolerance;
    return mdot_context_create(level->predictor, &level->context, err);
}

/* Most machines have no GPU, or none that the artefact has code for: what is not verified is told. */
static mdot_status add_gpu(verification *v, const char *path, const char *compute, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_open_options options = {.struct_size = sizeof options, .device = "cuda", .compute = compute};
    mdot_status status = add_level(v, path, &options, &reason);
    if (status == MDOT_INCOMPATIBLE && compute != NULL) return MDOT_OK; /* other architectures have it */
    if (status != MDOT_DEVICE) {
        if (status != MDOT_OK && err != NULL) *err = reason;
        return status;
    }
    char text[sizeof reason.message + 64];
    snprintf(text, sizeof text, "CUDA code is not verified: %s", reason.message);
    warn(v, text);
    return MDOT_OK;
}

/* The predictor's own choice on the GPU, and behind it the arithmetics that targets have beside theirs: each once. */
static mdot_status add_gpus(verification *v, const char *path, const mdot_predictor *opened, size_t first,
                            mdot_error *err)
{
    mdot_image_info image = MDOT_INIT(mdot_image_info), before = MDOT_INIT(mdot_image_info);
    mdot_status status = add_gpu(v, path, NULL, err);
    const char *done[CG_COMPUTES];
    size_t done_count = 0;
    for (size_t i = first; status == MDOT_OK && mdot_predictor_get_image(opened, i, &image) == MDOT_OK; i++) {
        bool is_other = i > first && strcmp(image.target, before.target) == 0;
        for (size_t k = 0; k < done_count; k++) is_other = is_other && strcmp(done[k], image.compute) != 0;
        before = image;
        if (!is_other || done_count == CG_COMPUTES) continue;
        done[done_count++] = image.compute;
        status = add_gpu(v, path, image.compute, err);
    }
    return status;
}

/* Opens the artefact once for each image that this machine's CPU runs, and on the first GPU that it has code for. */
static mdot_status open_levels(verification *v, const char *path, mdot_error *err)
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
        mdot_open_options options = {
            .struct_size = sizeof options, .cpu_level = image.target, .device = "cpu", .compute = image.compute};
        status = add_level(v, path, &options, err);
        if (status == MDOT_INCOMPATIBLE) status = MDOT_OK; /* a level beyond this machine */
    }
    if (status == MDOT_OK && i < info.image_count) status = add_gpus(v, path, best, i, err);
    mdot_predictor_close(best);
    return status;
}

static mdot_status find_entry(verification *v, const char *artefact_path, mdot_error *err)
{
    const mdot_predictor *predictor = v->levels[0].predictor;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    const char *name = v->options->entry != NULL ? v->options->entry : "predict";
    if (v->options->entry == NULL && info.entry_count == 1) {
        v->entry = 0;
    } else if (mdot_predictor_find_entry(predictor, name, &v->entry) != MDOT_OK) {
        return mdot_fail(err, MDOT_NOT_FOUND, "%s: there is no entry point \"%s\"", artefact_path, name);
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
    bool same =
        (size_t)v->graph->input_count == v->info.input_count && (size_t)v->graph->output_count == v->info.output_count;
    for (size_t i = 0; same && i < v->info.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_input(v->levels[0].predictor, v->entry, i, &info) != MDOT_OK) return MDOT_OUT_OF_RANGE;
        same = is_same_input(&info, v->graph->inputs[i]);
    }
    for (size_t i = 0; same && i < v->info.output_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_output(v->levels[0].predictor, v->entry, i, &info) != MDOT_OK) return MDOT_OUT_OF_RANGE;
        same = strcmp(info.name, v->graph->outputs[i]->name) == 0;
    }
    if (same) return MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: its inputs and outputs are not those of entry point \"%s\"",
                     model_path, v->info.name);
}

/* The tensors of options->inputs, which must be the entry's inputs at one length. */
static mdot_status read_inputs(verification *v, ir_arena *arena, mdot_error *err)
{
    const char *folder = v->options->inputs;
    int count;
    const ir_tensor **tensors = IR_NEW_ARRAY(arena, const ir_tensor *, CO_MAX_TENSORS);
    if (tensors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    mdot_status status = co_read_tensors(arena, folder, "input", tensors, &count, err);
    if (status != MDOT_OK) return status;
    if (count != v->graph->input_count)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: %d files input_<k>.pb for a model with %d inputs", folder,
                         count, v->graph->input_count);
    for (int i = 0; i < count; i++) {
        const ir_value *input = v->graph->inputs[i];
        tensors[i] = co_under_type(arena, tensors[i], input->type.dtype);
        int64_t length = co_solve_length(&input->type, tensors[i]);
        bool differs = length > 0 && v->given_length > 0 && length != v->given_length;
        if (length < 0 || differs || tensors[i]->dtype != input->type.dtype)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: input_%d.pb is no \"%s\" of the model%s", folder, i,
                             input->name, differs ? " at the length of those before" : "");
        if (length > 0) v->given_length = length;
    }
    v->given = tensors;
    return MDOT_OK;
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

static const bs_sized options_type = BS_SIZED(mdotc_verify_options, user);

mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err)
{
    mdotc_verify_options o = {0};
    mdot_status status = options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK;
    if (status != MDOT_OK) return status;
    if (artefact_path == NULL || model_path == NULL || out_passed == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdotc_verify needs an artefact, a model and a place for the result");
    status = co_check_tolerance("tolerance", o.tolerance, err);
    if (status != MDOT_OK) return status;
    verification v = {.options = &o, .info = MDOT_INIT(mdot_entry_info)};
    v.tolerance = v.options->tolerance > 0 ? v.options->tolerance : 1e-4;
    v.random = v.options->seed;
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");

    status = import_model(&v, model_path, arena, err);
    if (status == MDOT_OK) status = open_levels(&v, artefact_path, err);
    if (status == MDOT_OK) status = find_entry(&v, artefact_path, err);
    if (status == MDOT_OK) status = check_schema(&v, model_path, err);
    if (status == MDOT_OK && o.inputs != NULL) status = read_inputs(&v, arena, err);
    if (status == MDOT_OK) {
        v.tallies = IR_NEW_ARRAY(arena, tally, v.info.output_count + 1);
        if (v.tallies == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    }
    if (status == MDOT_OK) status = verify_entry(&v, out_passed, err);

    for (int l = 0; l < v.level_count; l++) {
        mdot_context_destroy(v.levels[l].context);
        mdot_predictor_close(v.levels[l].predictor);
    }
    ir_arena_destroy(arena);
    return status;
}
