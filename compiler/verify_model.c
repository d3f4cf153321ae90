/* verify_model.c — mdotc_verify: compare an artefact's code with the reference evaluation of its model, on random or
 * given inputs.
 *
 * For each bucket, three lengths are tested: the full length, the shortest (one more than the previous bucket), and
 * one between. The reference is evaluated once per length and serves every CPU ISA level and the GPU, if there is
 * one.
 */
#include "compiler/verify_model.h"
#include "base/struct_version.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHORT_RUNS = 4, MORE_RUNS = 56 };       /* of quantised models; more: in doubt */
enum { SURE = 10 };                            /* score of wrong code */
enum { MAX_LENGTHS = 3, CALM = 2, LOUD = 16 }; /* units of noise; loud: as much as other code may differ */

static const mdot_dtype half_types[CO_HALF_TYPES] = {MDOT_DTYPE_BF16, MDOT_DTYPE_F16};
/* Two factors, each off by half a spacing: every model has at least this error. */
static const double half_units[CO_HALF_TYPES] = {0x1p-8, 0x1p-11};

/* Limits for the further runs that draw every index of the model's tables: their number, and FLOPs plus bytes. */
enum { MAX_SWEEPS = 2048 };
static const double max_sweep_work = 4e9;

static void count_values(verification *v, value_counts *t, const ir_wide *expected)
{
    int64_t nan_before = t->nan;
    t->count += expected->count;
    for (int64_t i = 0; ir_dtype_is_float(expected->dtype) && i < expected->count; i++) {
        t->nan += isnan(expected->f[i]) != 0;
        t->infinite += isinf(expected->f[i]) != 0;
    }
    v->saw_nan = v->saw_nan || t->nan > nan_before;
}

/* The permitted errors in f32, and in each precision that multiplies in 16 bits. */
typedef struct output_bounds {
    co_bounds single, half[CO_HALF_TYPES];
} output_bounds;

static mdot_status find_bounds(verification *v, const co_expected *expected, ir_arena *arena, output_bounds **out,
                               mdot_error *err)
{
    output_bounds *bounds = IR_NEW_ARRAY(arena, output_bounds, v->info.output_count + 1);
    bool made = bounds != NULL;
    for (size_t i = 0; made && i < v->info.output_count; i++) {
        double *typical = &v->typical[i * (1 + CO_HALF_TYPES)], vague, ignored;
        const ir_type *type = &v->typed->outputs[i]->type;
        bool has_channels = type->rank >= 3 && type->dim[1].scale == 0;
        made = co_find_bounds(&expected[i], has_channels, -1, v->base, v->steps[i], v->tight, v->units, typical, arena,
                              &bounds[i].single, &vague);
        v->is_vague[i] = v->is_vague[i] || vague > 0.1;
        for (int h = 0; made && h < CO_HALF_TYPES; h++)
            if (v->rounds[h])
                made = co_find_bounds(&expected[i], has_channels, h, fmax(v->base, half_units[h]), v->steps[i],
                                      v->tight, v->units, &typical[1 + h], arena, &bounds[i].half[h], &ignored);
    }
    if (!made) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out = bounds;
    return MDOT_OK;
}

static mdot_status run_variants(verification *v, int64_t length, const co_tensor *inputs, const co_expected *expected,
                                ir_arena *arena, mdot_error *err)
{
    output_bounds *bounds = NULL;
    mdot_status found = find_bounds(v, expected, arena, &bounds, err);
    if (found != MDOT_OK) return found;
    mdot_status status = MDOT_OK;
    co_tensor *outputs = IR_NEW_ARRAY(arena, co_tensor, v->info.output_count + 1);
    if (outputs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const char *failure;
    for (int l = 0; status == MDOT_OK && l < v->variant_count; l++) {
        code_variant *variant = &v->variants[l];
        co_worst run = {0};
        status =
            co_create_tensors(variant->predictor, v->entry, length, false, v->info.output_count, arena, outputs, err);
        if (status == MDOT_OK)
            status = co_run(variant->context, v->entry, inputs, v->info.input_count, outputs, v->info.output_count,
                            arena, err);
        if (status == MDOT_OK && mdot_context_get_device_status(variant->context, &failure) != MDOT_OK)
            status =
                mdot_fail(err, MDOT_DEVICE, "%s failed at length %lld: %s", variant->name, (long long)length, failure);
        for (size_t i = 0; status == MDOT_OK && i < v->info.output_count; i++) {
            co_worst worst = {.length = length};
            const co_bounds *b = variant->half < 0 ? &bounds[i].single : &bounds[i].half[variant->half];
            status = co_find_worst(&outputs[i], &expected[i], b, v->style == CO_MASKED, &worst, err);
            if (v->units > CALM && variant->half < 0) {
                compared_runs *c = &variant->compared[i];
                c->all++;
                c->code_moves_more += worst.moved > b->moved;
                c->noise_moves_more += worst.moved < b->moved;
            }
            if (worst.share >= run.share) run = worst;
        }
        if (v->units > CALM && v->provided == NULL && run.share > variant->outlier.share) {
            co_worst other = variant->outlier;
            variant->outlier = run;
            run = other;
        }
        if (status != MDOT_OK || run.length == 0 || run.share < variant->share) continue;
        variant->share = run.share;
        variant->row.worst_error = run.error;
        variant->row.bound = run.bound;
        variant->row.worst_length = run.length;
    }
    return status;
}

/* Sets x->noisy, with the values that noise halved, made infinite or NaN before. Does it change any by 1 % or more? */
static bool keep_noise(co_expected *x, ir_wide *noisy)
{
    bool is_decisive = false;
    for (int64_t i = 0; noisy->f != NULL && i < noisy->count; i++) {
        if (!isfinite(x->single->f[i])) continue;
        double single = x->single->f[i], size = fabs(single), *value = &noisy->f[i];
        if (x->noisy != NULL && !(fabs(x->noisy->f[i] - single) < size / 2)) *value = x->noisy->f[i];
        is_decisive = is_decisive || !(fabs(*value - single) < fmax(1, size) / 100);
    }
    x->noisy = noisy;
    return is_decisive;
}

/* Evaluates the model in each way that the bounds need. Random integers are in the range of directly indexed tables. A
 * model that computes indices from inputs, for example from graph edges, may need real inputs. */
static mdot_status evaluate(verification *v, const ir_wide *const *inputs, ir_arena *arena, co_expected *out_expected,
                            mdot_error *err)
{
    enum { EXACT, SINGLE, NOISY, ROUNDED };
    size_t count = v->info.output_count;
    ir_wide **results = IR_NEW_ARRAY(arena, ir_wide *, count + 1);
    mdot_error reason = {0};
    mdot_status status = results != NULL ? MDOT_OK : mdot_fail(&reason, MDOT_OUT_OF_MEMORY, NULL);
    for (int way = EXACT, draws = 0; status == MDOT_OK && way < ROUNDED + CO_HALF_TYPES; way++) {
        if (way >= ROUNDED && !v->rounds[way - ROUNDED]) continue;
        bool is_decisive = false;
        if (way == NOISY)
            status =
                ir_evaluate_noisily(v->graph, co_next_random(&v->random), v->units, inputs, arena, results, &reason);
        else
            status = ir_evaluate_in(v->graph,
                                    way == EXACT    ? MDOT_DTYPE_NONE
                                    : way == SINGLE ? MDOT_DTYPE_F32
                                                    : half_types[way - ROUNDED],
                                    inputs, arena, results, &reason);
        for (size_t i = 0; status == MDOT_OK && i < count; i++) {
            co_expected *x = &out_expected[i];
            if (way == NOISY)
                is_decisive = keep_noise(x, results[i]) || is_decisive;
            else
                *(way == EXACT ? &x->exact : way == SINGLE ? &x->single : &x->rounded[way - ROUNDED]) = results[i];
        }
        if (is_decisive && v->units == CALM && ++draws < 8) way--;
    }
    if (status == MDOT_OUT_OF_RANGE && v->provided == NULL)
        return mdot_fail(err, status,
                         "%s; the random inputs are not valid for this model: give real ones with --inputs",
                         reason.message);
    if (status != MDOT_OK && err != NULL) *err = reason;
    return status;
}

/* `provided` is NULL for random inputs. */
static mdot_status verify_length(verification *v, int64_t length, const co_verify_inputs *provided, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const ir_wide **wide = IR_NEW_ARRAY(arena, const ir_wide *, v->info.input_count + 1);
    co_expected *expected = IR_NEW_ARRAY(arena, co_expected, v->info.output_count + 1);
    co_tensor *inputs = IR_NEW_ARRAY(arena, co_tensor, v->info.input_count + 1);
    mdot_status status = MDOT_OK;
    if (wide == NULL || expected == NULL || inputs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK)
        status = co_create_tensors(v->variants[0].predictor, v->entry, length, true, v->info.input_count, arena, inputs,
                                   err);
    for (size_t i = 0; status == MDOT_OK && i < v->info.input_count; i++) {
        wide[i] = provided != NULL ? ir_wide_from_tensor(arena, provided->tensors[i])
                                   : co_random_input(v->typed, (int)i, length, &inputs[i], v->style, &v->cursors[i],
                                                     &v->random, arena);
        const ir_tensor *stored = wide[i] != NULL ? ir_tensor_from_wide(arena, wide[i]) : NULL;
        if (stored != NULL)
            memcpy(inputs[i].data, stored->data, (size_t)stored->count * mdot_dtype_size_bytes(stored->dtype));
        else
            status = BS_OUT_OF_MEMORY(err, "input \"%s\"", inputs[i].name);
    }
    if (status == MDOT_OK) status = evaluate(v, wide, arena, expected, err);
    v->saw_nan = false;
    bool is_extreme = v->style >= CO_WIDE; /* its NaN says nothing about the domain */
    for (size_t i = 0; status == MDOT_OK && !is_extreme && i < v->info.output_count; i++)
        count_values(v, &v->counts[i], expected[i].single);
    if (status == MDOT_OK) status = run_variants(v, length, inputs, expected, arena, err);
    ir_arena_destroy(arena);
    return status;
}

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
                 (long long)t->infinite,
                 !is_all_nan ? ""
                 : v->options->inputs == NULL
                     ? "; the output has no finite value to verify: give inputs of the model's "
                       "domain with --inputs"
                     : "; the output has no finite value to verify");
        co_verify_warn(v, text);
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

/* Random inputs of a style whose indices may leave the model's range are skipped if they do. */
static mdot_status verify_style(verification *v, int64_t length, co_style style, mdot_error *err)
{
    mdot_error reason = {0};
    v->style = style;
    mdot_status status = verify_length(v, length, NULL, &reason);
    v->style = CO_NORMAL;
    if (status == MDOT_OUT_OF_RANGE) return MDOT_OK;
    if (status != MDOT_OK && err != NULL) *err = reason;
    return status;
}

/* Normal inputs, and those of narrower domains while the model gives NaN. */
static mdot_status verify_random(verification *v, int64_t length, mdot_error *err)
{
    static const co_style domains[] = {CO_POSITIVE, CO_UNIT, CO_ABOVE, CO_BELOW};
    BS_TRY(verify_length(v, length, NULL, err));
    for (size_t i = 0; v->saw_nan && i < sizeof domains / sizeof *domains; i++)
        BS_TRY(verify_style(v, length, domains[i], err));
    return MDOT_OK;
}

/* Draws the indices that no length has drawn yet, at the bucket's greatest length. */
static mdot_status sweep_indices(verification *v, int64_t longest, mdot_error *err)
{
    double work = 1;
    mdot_status status = MDOT_OK;
    for (const ir_node *node = v->typed->first; node != NULL; node = node->next) {
        ir_cost cost = node->op != NULL ? ir_node_cost(node, longest) : (ir_cost){0};
        work += cost.flops + cost.bytes_read + cost.bytes_written;
    }
    double most = fmin(MAX_SWEEPS, max_sweep_work / work);
    for (size_t i = 0; status == MDOT_OK && i < v->info.input_count; i++) {
        int64_t bound = co_index_bound(v->typed, (int)i, longest);
        for (int run = 0; status == MDOT_OK && run < most && bound != INT64_MAX && v->cursors[i] < bound; run++) {
            int64_t before = v->cursors[i];
            status = verify_length(v, longest, NULL, err);
            if (v->cursors[i] == before) break;
        }
        if (status != MDOT_OK || bound == INT64_MAX || v->cursors[i] >= bound) continue;
        char text[512];
        snprintf(text, sizeof text,
                 "input \"%.200s\" takes %lld indices, but random inputs drew only %lld of them; verify the rest with "
                 "--inputs",
                 v->graph->inputs[i]->name, (long long)bound, (long long)v->cursors[i]);
        co_verify_warn(v, text);
    }
    return status;
}

/* A value between two steps may be rounded to either, so right code may move values by more than rounding in f32 does.
 * Noise of LOUD units moves more of them in most runs. In 970 verified outputs of 200 right models, the code moved more
 * in 0.8 % of the runs where the two differ, and no score exceeded 1; with wrong weights, in 98.6 %. Even at a third, a
 * score would reach SURE with a probability of 1 in 20,000, however many runs follow (Wald's sequential test). */
static int score(const compared_runs *c) { return c->code_moves_more - 2 * c->noise_moves_more; }

static bool is_in_doubt(const verification *v)
{
    for (int l = 0; l < v->variant_count; l++)
        for (size_t i = 0; i < v->info.output_count; i++) {
            const compared_runs *c = &v->variants[l].compared[i];
            if (score(c) < SURE && score(c) > c->all / 8) return true;
        }
    return false;
}

static bool check_moved(const verification *v, const code_variant *variant)
{
    bool passed = true;
    for (size_t i = 0; i < v->info.output_count; i++) {
        const compared_runs *c = &variant->compared[i];
        if (score(c) < SURE) continue;
        char text[512];
        snprintf(
            text, sizeof text,
            "output \"%.200s\", bucket %lld, %s: in %d of %d runs, the code rounds more quantised values to another "
            "step than rounding in f32 explains",
            v->graph->outputs[i]->name, (long long)variant->row.max_length, variant->name, c->code_moves_more, c->all);
        co_verify_warn(v, text);
        passed = false;
    }
    return passed;
}

/* Verifies random lengths of the bucket, or the given inputs whose length is in the bucket. */
static mdot_status verify_lengths(verification *v, int64_t shortest, int64_t longest, mdot_error *err)
{
    int64_t lengths[MAX_LENGTHS];
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < v->provided_count; i++)
        if (co_verify_holds(&v->provided[i], shortest, longest))
            status = verify_length(v, v->provided[i].length, &v->provided[i], err);
    if (v->provided != NULL) return status;
    int count = choose_lengths(v, shortest, longest, lengths);
    for (int i = 0; i < count && status == MDOT_OK; i++) status = verify_random(v, lengths[i], err);
    int64_t usual = shortest + 7 < longest ? shortest + 7 : longest; /* long enough for rows, and soon evaluated */
    for (co_style style = CO_WIDE; status == MDOT_OK && style <= CO_MASKED; style++)
        status = verify_style(v, usual, style, err);
    int runs = v->units > CALM ? SHORT_RUNS : 0;
    for (int i = 0; status == MDOT_OK && i < runs; i++) {
        status = verify_style(v, usual, CO_NORMAL, err);
        if (i + 1 == runs && runs < SHORT_RUNS + MORE_RUNS && is_in_doubt(v)) runs++;
    }
    return status == MDOT_OK && longest == v->longest ? sweep_indices(v, longest, err) : status;
}

/* Sets the bounds, and warns where rounding decides an output. */
static void begin_rows(verification *v, int64_t longest, double rounding, double quantised)
{
    v->tight = fmax(v->tolerance, rounding);
    v->base = fmax(v->tolerance, quantised);
    v->units = v->tight < v->base ? LOUD : CALM;
    for (int l = 0; l < v->variant_count; l++) {
        int half = v->variants[l].half;
        v->variants[l].share = 0;
        v->variants[l].outlier = (co_worst){0};
        for (size_t i = 0; i < v->info.output_count; i++) v->variants[l].compared[i] = (compared_runs){0};
        v->variants[l].row = (mdotc_verify_row){.struct_size = sizeof(mdotc_verify_row),
                                                .entry = v->info.name,
                                                .level = v->variants[l].name,
                                                .max_length = longest,
                                                .bound = half < 0 ? v->base : fmax(v->base, half_units[half])};
    }
    for (size_t i = 0; i < v->info.output_count; i++) {
        v->counts[i] = (value_counts){0};
        v->is_vague[i] = false;
    }
}

static void warn_of_vague_outputs(const verification *v, int64_t longest)
{
    for (size_t i = 0; i < v->info.output_count; i++) {
        if (!v->is_vague[i]) continue;
        char text[512];
        snprintf(text, sizeof text,
                 "output \"%.200s\", bucket %lld: on these inputs, rounding in f32 decides more than a tenth of the "
                 "values; %s",
                 v->graph->outputs[i]->name, (long long)longest,
                 v->options->inputs == NULL ? "verify with inputs of the model's domain (--inputs)"
                                            : "they cannot be verified");
        co_verify_warn(v, text);
    }
}

static mdot_status verify_bucket(verification *v, int64_t shortest, int64_t longest, bool *out_passed, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = type_bucket(v, longest, arena, err);
    double quantised = 0, rounding = status == MDOT_OK ? co_rounding(v->typed, &quantised) : 0;
    begin_rows(v, longest, rounding, quantised);
    if (status == MDOT_OK && !co_find_steps(v->typed, arena, v->steps))
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = verify_lengths(v, shortest, longest, err);
    ir_arena_destroy(arena);
    if (status != MDOT_OK) return status;
    bool is_verified = check_reference(v, longest);
    warn_of_vague_outputs(v, longest);
    for (int l = 0; l < v->variant_count; l++) {
        mdotc_verify_row *row = &v->variants[l].row;
        row->passed = is_verified && v->variants[l].share <= 1 && check_moved(v, &v->variants[l]);
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
        BS_TRY(mdot_predictor_get_bucket(v->variants[0].predictor, v->entry, b, &bucket));
        bool is_tested = v->provided == NULL;
        for (size_t i = 0; i < v->provided_count; i++)
            is_tested = is_tested || co_verify_holds(&v->provided[i], shortest, bucket.max_length);
        if (is_tested) BS_TRY(verify_bucket(v, shortest, bucket.max_length, &passed, err));
        shortest = bucket.max_length + 1;
    }
    *out_passed = passed;
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

static mdot_status check_options(const mdotc_verify_options *o, mdot_error *err)
{
    if (o->job_count > 0 && o->inputs != NULL) return BS_INVALID(err, "a folder of inputs and jobs exclude each other");
    if (o->job_count > 0 && (o->jobs == NULL || o->configurations == NULL))
        return BS_INVALID(err, "job_count is %zu, but jobs or configurations is NULL", o->job_count);
    return MDOT_OK;
}

static const bs_struct_version options_type = BS_SIZED(mdotc_verify_options, user);

mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err)
{
    mdotc_verify_options o = {0};
    BS_TRY(options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK);
    if (artefact_path == NULL || model_path == NULL || out_passed == NULL)
        return BS_INVALID(err, "mdotc_verify requires an artefact, a model and an output parameter for the result");
    BS_TRY(co_check_tolerance("tolerance", o.tolerance, err));
    BS_TRY(check_options(&o, err));
    verification v = {.options = &o, .info = MDOT_INIT(mdot_entry_info)};
    v.tolerance = v.options->tolerance > 0 ? v.options->tolerance : 1e-4;
    v.random = v.options->seed;
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);

    mdot_status status = import_model(&v, model_path, arena, err);
    if (status == MDOT_OK) status = co_verify_open(&v, artefact_path, err);
    if (status == MDOT_OK) status = co_verify_find_entry(&v, artefact_path, err);
    if (status == MDOT_OK) status = co_verify_check_schema(&v, model_path, err);
    if (status == MDOT_OK) status = co_verify_read_given(&v, arena, err);
    if (status == MDOT_OK) {
        v.counts = IR_NEW_ARRAY(arena, value_counts, v.info.output_count + 1);
        v.typical = IR_NEW_ARRAY(arena, double, (1 + CO_HALF_TYPES) * v.info.output_count + 1);
        v.cursors = IR_NEW_ARRAY(arena, int64_t, v.info.input_count + 1);
        v.is_vague = IR_NEW_ARRAY(arena, bool, v.info.output_count + 1);
        v.steps = IR_NEW_ARRAY(arena, double, v.info.output_count + 1);
        compared_runs *compared = IR_NEW_ARRAY(arena, compared_runs, MAX_VARIANTS * v.info.output_count + 1);
        for (int l = 0; l < v.variant_count && compared != NULL; l++)
            v.variants[l].compared = compared + (size_t)l * v.info.output_count;
        if (compared == NULL || v.counts == NULL || v.steps == NULL || v.typical == NULL || v.cursors == NULL ||
            v.is_vague == NULL)
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = verify_entry(&v, out_passed, err);

    for (int l = 0; l < v.variant_count; l++) {
        mdot_context_destroy(v.variants[l].context);
        mdot_predictor_close(v.variants[l].predictor);
    }
    ir_arena_destroy(arena);
    return status;
}
