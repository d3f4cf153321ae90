/* verify.c — mdotc_verify: an artefact's code against the reference evaluation of its model, on random inputs.
 *
 * For each bucket: full length, one more than the bucket before (the shortest that lands here) and one between. The
 * reference is evaluated once a length and serves every CPU level, and the GPU where there is one.
 */
#include "base/sized.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LENGTHS = 3, MAX_LEVELS = MDOT_ABI_MAX_IMAGES + 1 }; /* the CPU's and a GPU */

/* What rounding the operands of every matrix product to 8 or 11 bits may cost an encoder's output. */
static const double reduced_tolerance = 1e-2;

/* ---- Random inputs ---------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static double next_uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static double next_normal(uint64_t *state) /* Box and Muller */
{
    double radius = sqrt(-2 * log(1 - next_uniform(state)));
    return radius * cos(2 * 3.14159265358979323846 * next_uniform(state));
}

/* Integer inputs index tables or hold flags. The bound is the shortest table that a Gather reads with the value,
 * directly or through operators that only reshape or convert it; without one, values are 0 and 1. */
static int64_t index_bound(const ir_graph *graph, const ir_value *value, int depth)
{
    int64_t bound = INT64_MAX;
    for (const ir_node *node = graph->first; node != NULL && depth < 8; node = node->next) {
        if (node->op == NULL) continue;
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != value) continue;
            int64_t found = INT64_MAX;
            const ir_tensor *table = node->inputs[0] != NULL ? node->inputs[0]->constant : NULL;
            switch (ir_node_opcode(node)) {
            case IR_OP_Gather: {
                int64_t axis = ir_node_int(node, "axis", 0);
                if (axis < 0 && table != NULL) axis += table->rank;
                if (i == 1 && table != NULL && axis >= 0 && axis < table->rank) found = table->dims[axis];
                break;
            }
            case IR_OP_Cast:
            case IR_OP_Identity:
            case IR_OP_Reshape:
            case IR_OP_Unsqueeze:
            case IR_OP_Squeeze:
                if (i == 0 && node->outputs[0] != NULL) found = index_bound(graph, node->outputs[0], depth + 1);
                break;
            default:
                break;
            }
            if (found < bound) bound = found;
        }
    }
    return bound;
}

static ir_wide *random_input(const ir_graph *graph, int input, const co_tensor *shape, uint64_t *state, ir_arena *arena)
{
    ir_wide *wide = ir_wide_create(arena, shape->dtype, shape->rank, shape->dims);
    if (wide == NULL || wide->count == 0) return wide;
    if (ir_dtype_is_float(shape->dtype)) {
        for (int64_t i = 0; i < wide->count; i++) wide->f[i] = (float)next_normal(state);
        return wide;
    }
    int64_t bound = index_bound(graph, graph->inputs[input], 0);
    if (bound == INT64_MAX || shape->dtype == MDOT_DTYPE_BOOL) {
        /* A scattered mask: a fifth is off, never a whole row, since a mean over nothing has no value. */
        for (int64_t i = 0; i < wide->count; i++) wide->i[i] = next_uniform(state) < 0.8;
        int64_t row = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
        for (int64_t i = 0; i < wide->count; i += row) wide->i[i + (int64_t)(next_random(state) % (uint64_t)row)] = 1;
    } else {
        for (int64_t i = 0; i < wide->count; i++) wide->i[i] = (int64_t)(next_random(state) % (uint64_t)bound);
    }
    return wide;
}

/* ---- One length ------------------------------------------------------------------------------------------------- */

typedef struct level_state {
    const char *name;
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
    const mdotc_verify_options *options;
    double tolerance;
    size_t entry;
    mdot_entry_info info;
    int level_count;
    level_state levels[MAX_LEVELS];
    tally *tallies; /* by output, of the bucket at hand */
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
            double error = co_compare(&outputs[i], want[i], v->tolerance, v->tolerance).scaled;
            if (error < level->row.worst_error && level->row.worst_length != 0) continue;
            level->row.worst_error = error;
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
        wide[i] = random_input(v->graph, (int)i, &inputs[i], &v->random, arena);
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
    out_lengths[count++] = longest;
    if (shortest < longest) out_lengths[count++] = shortest;
    if (longest - shortest > 1)
        out_lengths[count++] = shortest + 1 + (int64_t)(next_random(&v->random) % (uint64_t)(longest - shortest - 1));
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

static mdot_status verify_bucket(verification *v, int64_t shortest, int64_t longest, bool *out_passed, mdot_error *err)
{
    int64_t lengths[MAX_LENGTHS];
    int count = choose_lengths(v, shortest, longest, lengths);
    for (int l = 0; l < v->level_count; l++)
        v->levels[l].row = (mdotc_verify_row){.struct_size = sizeof(mdotc_verify_row),
                                              .entry = v->info.name,
                                              .level = v->levels[l].name,
                                              .max_length = longest};
    for (size_t i = 0; i < v->info.output_count; i++) v->tallies[i] = (tally){0};
    for (int i = 0; i < count; i++) {
        mdot_status status = verify_length(v, lengths[i], err);
        if (status != MDOT_OK) return status;
    }
    bool is_verified = judge_reference(v, longest);
    for (int l = 0; l < v->level_count; l++) {
        mdotc_verify_row *row = &v->levels[l].row;
        row->passed = is_verified && row->worst_error <= v->levels[l].tolerance;
        *out_passed = *out_passed && row->passed;
        if (v->options->row != NULL) v->options->row(v->options->user, row);
    }
    return MDOT_OK;
}

static mdot_status verify_entry(verification *v, bool *out_passed, mdot_error *err)
{
    bool passed = true;
    int64_t shortest = v->info.has_length ? 1 : 0;
    for (size_t b = 0; b < v->info.bucket_count; b++) {
        mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
        mdot_status status = mdot_predictor_get_bucket(v->levels[0].predictor, v->entry, b, &bucket);
        if (status == MDOT_OK) status = verify_bucket(v, shortest, bucket.max_length, &passed, err);
        if (status != MDOT_OK) return status;
        shortest = bucket.max_length + 1;
    }
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
    bool on_cpu = strcmp(opened.device, "cpu") == 0;
    level->name = on_cpu ? opened.cpu_level : opened.device;
    bool reduced = strcmp(opened.device_compute, "fp32") != 0 && v->tolerance < reduced_tolerance;
    level->tolerance = reduced ? reduced_tolerance : v->tolerance;
    return mdot_context_create(level->predictor, &level->context, err);
}

/* Most machines have no GPU, or none that the artefact has code for: what is not verified is told. */
static mdot_status add_gpu(verification *v, const char *path, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_status status =
        add_level(v, path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cuda"}, &reason);
    if (status != MDOT_DEVICE) {
        if (status != MDOT_OK && err != NULL) *err = reason;
        return status;
    }
    char text[sizeof reason.message + 64];
    snprintf(text, sizeof text, "CUDA code is not verified: %s", reason.message);
    warn(v, text);
    return MDOT_OK;
}

/* Opens the artefact once for each level that it has and this machine runs, and on the first GPU that it has code for.
 */
static mdot_status open_levels(verification *v, const char *path, mdot_error *err)
{
    mdot_predictor *best;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_status status = mdot_predictor_open(
        path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cpu"}, &best, err);
    if (status != MDOT_OK) return status;
    mdot_predictor_get_info(best, &info);
    bool has_gpu_code = false;
    for (size_t i = 0; status == MDOT_OK && i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        status = mdot_predictor_get_image(best, i, &image);
        if (status != MDOT_OK || strcmp(image.kind, "cpu") != 0) {
            has_gpu_code = true;
            continue;
        }
        mdot_open_options options = {.struct_size = sizeof options, .cpu_level = image.target, .device = "cpu"};
        status = add_level(v, path, &options, err);
        if (status == MDOT_INCOMPATIBLE) status = MDOT_OK; /* a level beyond this machine */
    }
    if (status == MDOT_OK && has_gpu_code) status = add_gpu(v, path, err);
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
