/* test_search.c — a search finds the same layouts as plain loops over mdot_predict: it loses none, counts each once,
 * and keeps the fastest. Its result is independent of the number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"
#include "runtime/job/configuration.h"
#include "runtime/search/search.h"
#include "tests/support/assertions.h"

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *contexts[3];
    mdot_job *job;
    mdot_calibration *calibration; /* NULL: none */
    mdot_gpu gpus[2];
} fixture;

static const char *const gpu_names[] = {"A100", "RTX 3090"};
static const uint32_t sizes[] = {1, 2, 8, 16};
enum { SIZES = sizeof sizes / sizeof *sizes, GPUS = 2, NODE = 8, BLOCKS = 12, KEPT = 7 };

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    mdot_error err = {0};
    const mdot_dim_binding sequence = {"sequence", 128, NULL};
    const mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = 1};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &f->predictor, &err);
    for (size_t i = 0; status == MDOT_OK && i < 3; i++)
        status = mdot_context_create(f->predictor, &f->contexts[i], &err);
    if (status == MDOT_OK)
        status = mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", &options, &f->job, &err);
    for (size_t i = 0; status == MDOT_OK && i < GPUS; i++) {
        f->gpus[i] = MDOT_INIT(mdot_gpu);
        status = mdot_gpu_find(gpu_names[i], &f->gpus[i], &err);
    }
    if (status != MDOT_OK) print_error("%s\n", err.message);
    *state = f;
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    mdot_job_destroy(f->job);
    for (size_t i = 0; i < 3; i++) mdot_context_destroy(f->contexts[i]);
    mdot_predictor_close(f->predictor);
    free(f);
    return 0;
}

static const mdot_configuration base = {
    .struct_size = sizeof base, .batch = 1, .precision = MDOT_PRECISION_AMP, .optimizer = MDOT_OPTIMIZER_ADAMW};

static mdot_plan_space space_of(const fixture *f, int64_t global_batch)
{
    return (mdot_plan_space){.struct_size = sizeof(mdot_plan_space),
                             .base = &base,
                             .gpus = f->gpus,
                             .gpu_model_count = GPUS,
                             .sizes = sizes,
                             .size_count = SIZES,
                             .global_batch = global_batch,
                             .kept = KEPT,
                             .calibration = f->calibration};
}

static mdot_plan *search(const fixture *f, const mdot_plan_space *space, size_t contexts)
{
    mdot_plan *plan = NULL;
    mdot_error err = {0};
    if (mdot_plan_create(f->contexts, contexts, f->job, space, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    return plan;
}

/* ---- Plain loops ------------------------------------------------------------------------------------------------- */

typedef struct expected {
    double fastest[GPUS][SIZES][KEPT]; /* ms for each sample, ascending; infinite if there are fewer layouts */
    uint64_t priced, too_large;
} expected;

static void insert(double *times, double time)
{
    for (int i = 0; i < KEPT; i++) {
        double larger = times[i] > time ? times[i] : time;
        times[i] = times[i] < time ? times[i] : time;
        time = larger;
    }
}

static bool fits(const mdot_prediction *p)
{
    return p->reserved_bytes + (p->memory_upper_bytes - p->peak_memory_bytes) <= p->usable_bytes;
}

/* The fastest of the layouts with other numbers of blocks at the ends. */
static double balanced_ms(const fixture *f, mdot_configuration c, double even_ms)
{
    uint32_t share = BLOCKS / c.pipeline_parallel, most = c.pipeline_parallel > 2 ? share + 1 : BLOCKS - 1;
    for (uint32_t first = 1; first <= most; first++)
        for (uint32_t last = 1; last <= most && first + last <= BLOCKS; last++) {
            mdot_prediction p = MDOT_INIT(mdot_prediction);
            c.first_stage_blocks = first;
            c.last_stage_blocks = last;
            if (mdot_predict(f->contexts[0], f->job, &c, &p, NULL) != MDOT_OK || !fits(&p)) continue;
            if (f->calibration != NULL)
                assert_int_equal(mdot_calibration_apply_to_job(f->calibration, f->job, &c, &p, NULL), MDOT_OK);
            if (fits(&p) && p.step_ms < even_ms) even_ms = p.step_ms;
        }
    return even_ms;
}

static void try_layout(const fixture *f, mdot_configuration c, double samples, double *times, expected *out)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    if (mdot_predict(f->contexts[0], f->job, &c, &p, NULL) != MDOT_OK) return;
    for (int corrected = 0; corrected < 2; corrected++) {
        if (!fits(&p)) {
            out->too_large++;
            return;
        }
        if (f->calibration == NULL || corrected > 0) continue;
        assert_int_equal(mdot_calibration_apply_to_job(f->calibration, f->job, &c, &p, NULL), MDOT_OK);
    }
    out->priced++;
    if (c.pipeline_parallel > 1 && c.virtual_stages == 1) p.step_ms = balanced_ms(f, c, p.step_ms);
    insert(times, p.step_ms / samples);
}

/* All layouts of one GPU model, size and division into tensors and stages. */
static void try_shard(const fixture *f, size_t gpu, size_t size, int tensor, int stages, int64_t global, expected *out)
{
    int workers = (int)sizes[size] / tensor / stages;
    for (int zero = 0; zero <= (workers > 1 ? 3 : 0); zero++)
        for (int recompute = 0; recompute < 3; recompute++)
            for (int parts = 1; parts <= (stages > 1 ? 4 : 1) && parts * stages <= BLOCKS; parts *= 2)
                for (int64_t micro = 1; micro <= 4096; micro *= 2) {
                    mdot_configuration c = base;
                    int64_t passes = global > 0 ? global / (micro * workers) : stages > 1 ? 4 * stages : 1;
                    if (global > 0 && passes * micro * workers != global) continue;
                    c.gpu_spec = &f->gpus[gpu];
                    c.gpu_count = (int)sizes[size];
                    c.node_count = sizes[size] > NODE ? sizes[size] / NODE : 1;
                    c.tensor_parallel = (uint32_t)tensor;
                    c.sequence_parallel = tensor > 1;
                    c.pipeline_parallel = (uint32_t)stages;
                    c.data_parallel = (uint32_t)workers;
                    c.zero_stage = (uint32_t)zero;
                    c.recompute = (mdot_recompute)recompute;
                    c.virtual_stages = (uint32_t)parts;
                    c.batch = stages > 1 ? micro * passes : micro;
                    c.micro_batches = stages > 1 ? (uint32_t)passes : 1;
                    c.accumulate = stages > 1 ? 1 : (uint32_t)passes;
                    try_layout(f, c, (double)(micro * passes * workers), out->fastest[gpu][size], out);
                }
}

static void loop(const fixture *f, int64_t global, expected *out)
{
    *out = (expected){.priced = 0};
    for (size_t gpu = 0; gpu < GPUS; gpu++)
        for (size_t size = 0; size < SIZES; size++) {
            for (int i = 0; i < KEPT; i++) out->fastest[gpu][size][i] = INFINITY;
            for (int tensor = 1; tensor <= NODE; tensor *= 2)
                for (int stages = 1; stages <= BLOCKS; stages++)
                    if (sizes[size] % (uint32_t)(tensor * stages) == 0)
                        try_shard(f, gpu, size, tensor, stages, global, out);
        }
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

/* The fastest layout of all pipelines with all numbers of blocks at their ends. */
static void best_split(const fixture *f, const mdot_job *job, mdot_configuration c, double samples, double *best)
{
    for (c.first_stage_blocks = 0; c.first_stage_blocks < BLOCKS; c.first_stage_blocks++)
        for (c.last_stage_blocks = 0; c.last_stage_blocks < BLOCKS; c.last_stage_blocks++) {
            mdot_prediction p = MDOT_INIT(mdot_prediction);
            bool is_half_even = (c.first_stage_blocks == 0) != (c.last_stage_blocks == 0);
            if (is_half_even || mdot_predict(f->contexts[0], job, &c, &p, NULL) != MDOT_OK) continue;
            if (p.reserved_bytes + (p.memory_upper_bytes - p.peak_memory_bytes) > p.usable_bytes) continue;
            if (p.step_ms / samples < *best) *best = p.step_ms / samples;
        }
}

/* GPT-2's head costs as much as five blocks. The best pipeline is the best of all layouts with all numbers of blocks at
 * the ends, and never worse than the best with equal stages. */
static void stages_are_the_best_of_all_splits(void **state)
{
    const fixture *f = *state;
    static const int64_t batches[] = {0, 64, 480};
    static const double degrees[] = {2, 4}, one = 1, recompute = 1, micro[] = {1, 4, 16};
    const mdot_plan_axis axes[] = {
        {"pipeline_parallel", degrees, 2}, {"virtual_stages", &one, 1}, {"zero_stage", &one, 1},
        {"recompute", &recompute, 1},      {"batch", micro, 3},         {"tensor_parallel", &one, 1}};
    mdot_job *job = NULL;
    size_t uneven = 0;
    assert_int_equal(setenv("MDOT_JOBS", MDOT_SOURCE_DIR "/weights/jobs", 1), 0);
    assert_int_equal(mdot_job_read("gpt2", NULL, &job, NULL), MDOT_OK);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        mdot_plan_space space = space_of(f, batches[b]);
        mdot_plan *plan = NULL;
        mdot_plan_info info = MDOT_INIT(mdot_plan_info);
        double best[GPUS][SIZES], even[GPUS][SIZES], found[GPUS][SIZES];
        space.axes = axes;
        space.axis_count = sizeof axes / sizeof *axes;
        space.kept = 1;
        assert_int_equal(mdot_plan_create(f->contexts, 2, job, &space, &plan, NULL), MDOT_OK);
        assert_int_equal(mdot_plan_get_info(plan, &info), MDOT_OK);
        for (size_t i = 0; i < (size_t)GPUS * SIZES; i++)
            (&best[0][0])[i] = (&even[0][0])[i] = (&found[0][0])[i] = INFINITY;
        for (size_t i = 0; i < info.layout_count; i++) {
            mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
            assert_int_equal(mdot_plan_get_layout(plan, i, &layout), MDOT_OK);
            size_t size = 0;
            while (sizes[size] != (uint32_t)layout.configuration.gpu_count) size++;
            found[layout.gpu_model][size] = layout.prediction.step_ms / layout.samples;
            uneven += layout.configuration.first_stage_blocks > 0;
        }
        for (size_t i = 0; i < (size_t)GPUS * SIZES * 6; i++) {
            size_t gpu = i % GPUS, size = i / GPUS % SIZES;
            int stages = (int)degrees[i / GPUS / SIZES % 2];
            int64_t samples = (int64_t)micro[i / GPUS / SIZES / 2], workers = sizes[size] / stages;
            int64_t passes = batches[b] > 0 && workers > 0 ? batches[b] / (samples * workers) : 4 * stages;
            if (workers == 0 || (batches[b] > 0 && passes * samples * workers != batches[b])) continue;
            mdot_configuration c = base;
            c.gpu_spec = &f->gpus[gpu];
            c.gpu_count = (int)sizes[size];
            c.node_count = sizes[size] > NODE ? sizes[size] / NODE : 1;
            c.tensor_parallel = c.virtual_stages = c.zero_stage = 1;
            c.recompute = (mdot_recompute)recompute;
            c.pipeline_parallel = (uint32_t)stages;
            c.data_parallel = (uint32_t)workers;
            c.batch = samples * passes;
            c.micro_batches = (uint32_t)passes;
            c.accumulate = 1;
            best_split(f, job, c, (double)(samples * passes * workers), &best[gpu][size]);
        }
        assert_memory_equal(found, best, sizeof found);
        mdot_plan_destroy(plan);
    }
    mdot_job_destroy(job);
    assert_compare(uneven, >, 8);
}

/* With 0: no calibration; 1: steps that take 1.6 times as long as predicted, with 1.4 times the memory. */
static void expect_loops(fixture *f, bool is_calibrated)
{
    static const int64_t batches[] = {0, 96};
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_configuration c = base;
    c.gpu_spec = &f->gpus[0];
    assert_int_equal(mdot_predict(f->contexts[0], f->job, &c, &p, NULL), MDOT_OK);
    const mdot_measurement step = {.struct_size = sizeof step,
                                   .job = f->job,
                                   .configuration = &c,
                                   .step_ms = 1.6 * p.step_ms,
                                   .memory_bytes = 1.4 * (double)p.peak_memory_bytes};
    if (is_calibrated)
        assert_int_equal(mdot_calibrate_measured(f->contexts[0], &step, 1, &f->calibration, NULL), MDOT_OK);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        mdot_plan_space space = space_of(f, batches[b]);
        mdot_plan *plan = search(f, &space, 1);
        mdot_plan_info info = MDOT_INIT(mdot_plan_info);
        expected want;
        loop(f, batches[b], &want);
        assert_int_equal(mdot_plan_get_info(plan, &info), MDOT_OK);
        assert_int_equal(info.priced, want.priced);
        assert_int_equal(info.too_large, want.too_large);
        assert_compare(info.priced, >, 300);
        size_t expected_count = 0;
        expected found;
        for (size_t i = 0; i < (size_t)GPUS * SIZES * KEPT; i++) (&found.fastest[0][0][0])[i] = INFINITY;
        for (size_t i = 0; i < info.layout_count; i++) {
            mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
            assert_int_equal(mdot_plan_get_layout(plan, i, &layout), MDOT_OK);
            size_t size = 0;
            while (sizes[size] != (uint32_t)layout.configuration.gpu_count) size++;
            insert(found.fastest[layout.gpu_model][size], layout.prediction.step_ms / layout.samples);
        }
        assert_memory_equal(found.fastest, want.fastest, sizeof found.fastest);
        for (size_t i = 0; i < (size_t)GPUS * SIZES * KEPT; i++)
            expected_count += isfinite((&want.fastest[0][0][0])[i]) != 0;
        assert_int_equal(info.layout_count, expected_count);
        mdot_plan_destroy(plan);
    }
    mdot_calibration_destroy(f->calibration);
    f->calibration = NULL;
}

static void a_search_finds_what_plain_loops_find(void **state) { expect_loops(*state, false); }
static void a_calibrated_search_finds_what_corrected_loops_find(void **state) { expect_loops(*state, true); }

/* The counts of a search cover each layout of the space once. */
static void the_counts_add_up(void **state)
{
    const fixture *f = *state;
    mdot_plan_space source = space_of(f, 48);
    rt_space *space = calloc(1, sizeof *space);
    mdot_error err = {0};
    assert_int_equal(rt_space_read(&source, f->job, space, &err), MDOT_OK);
    uint64_t complete = 0, indivisible = 0;
    for (size_t i = 0; i < rt_item_count(space); i++) {
        rt_search_item item;
        rt_layouts layouts;
        mdot_configuration layout;
        if (!rt_item_at(space, i, &item)) continue;
        rt_layouts_begin(&layouts, space, &item);
        while (rt_layouts_next(&layouts, &layout)) {
            complete++;
            assert_compare(rt_samples_of_step(&layout), ==, 48);
        }
        indivisible += layouts.indivisible;
    }
    free(space);
    mdot_plan *plan = search(f, &source, 1);
    mdot_plan_info info = MDOT_INIT(mdot_plan_info);
    mdot_plan_get_info(plan, &info);
    assert_int_equal(info.priced + info.too_large + info.refused, complete);
    assert_int_equal(info.indivisible, indivisible);
    mdot_plan_destroy(plan);
}

static void threads_do_not_change_a_plan(void **state)
{
    const fixture *f = *state;
    mdot_plan_space space = space_of(f, 64);
    mdot_plan *one = search(f, &space, 1), *three = search(f, &space, 3);
    mdot_plan_info a = MDOT_INIT(mdot_plan_info), b = MDOT_INIT(mdot_plan_info);
    mdot_plan_get_info(one, &a);
    mdot_plan_get_info(three, &b);
    assert_memory_equal(&a, &b, sizeof a);
    for (size_t i = 0; i < a.layout_count; i++) {
        mdot_plan_layout x = MDOT_INIT(mdot_plan_layout), y = MDOT_INIT(mdot_plan_layout);
        mdot_plan_get_layout(one, i, &x);
        mdot_plan_get_layout(three, i, &y);
        y.configuration.gpu_spec = x.configuration.gpu_spec; /* each plan has a copy */
        assert_memory_equal(&x.configuration, &y.configuration, sizeof x.configuration);
        assert_memory_equal(&x.prediction, &y.prediction, sizeof x.prediction);
    }
    mdot_plan_destroy(one);
    mdot_plan_destroy(three);
}

static void options_that_are_set_stay(void **state)
{
    const fixture *f = *state;
    const double precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP}, micro_batches[] = {4};
    const mdot_plan_axis axes[] = {{"precision", precisions, 2}, {"batch", micro_batches, 1}};
    mdot_configuration fixed = base;
    fixed.tensor_parallel = 2;
    fixed.zero_stage = 1;
    mdot_plan_space space = space_of(f, 64);
    space.base = &fixed;
    space.axes = axes;
    space.axis_count = 2;
    space.kept = 500;
    mdot_plan *plan = search(f, &space, 2);
    mdot_plan_info info = MDOT_INIT(mdot_plan_info);
    mdot_plan_get_info(plan, &info);
    assert_compare(info.layout_count, >, 20);
    size_t of_precision[2] = {0};
    for (size_t i = 0; i < info.layout_count; i++) {
        mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
        mdot_plan_get_layout(plan, i, &layout);
        const mdot_configuration *c = &layout.configuration;
        assert_int_equal(c->tensor_parallel, 2);
        assert_int_equal(c->zero_stage, 1);
        assert_int_equal(c->batch / c->micro_batches, 4);
        assert_compare(layout.samples, ==, 64);
        of_precision[c->precision == MDOT_PRECISION_AMP]++;
    }
    assert_compare(of_precision[0], >, 0);
    assert_compare(of_precision[1], >, 0);
    mdot_plan_destroy(plan);
}

static bool stop(void *state, double finished)
{
    assert_compare(finished, <=, 1);
    ++*(int *)state;
    return false;
}

static void a_search_ends_when_progress_returns_false(void **state)
{
    const fixture *f = *state;
    static uint32_t many[MDOT_PLAN_SIZES_MAX];
    int calls = 0;
    for (uint32_t i = 0; i < MDOT_PLAN_SIZES_MAX; i++) many[i] = 8 * (i + 1);
    mdot_plan_space space = space_of(f, 0);
    space.sizes = many;
    space.size_count = MDOT_PLAN_SIZES_MAX;
    space.progress = stop;
    space.progress_state = &calls;
    mdot_plan *plan = search(f, &space, 1);
    mdot_plan_info info = MDOT_INIT(mdot_plan_info);
    mdot_plan_get_info(plan, &info);
    assert_int_equal(calls, 1);
    assert_int_equal(info.cancelled, 1);
    assert_compare(info.priced + info.too_large, <, 20000);
    mdot_plan_destroy(plan);
}

static void wrong_spaces_are_refused_by_name(void **state)
{
    const fixture *f = *state;
    const double wrong[] = {77};
    const uint32_t odd[] = {12}, none[] = {0};
    const mdot_plan_axis unknown = {"colour", wrong, 1}, range = {"precision", wrong, 1},
                         empty = {"precision", wrong, 0}, derived = {"data_parallel", wrong, 1},
                         twice[] = {{"zero_stage", (const double[]){1}, 1}, {"zero_stage", (const double[]){2}, 1}};
    mdot_plan_space spaces[9];
    for (size_t i = 0; i < 9; i++) spaces[i] = space_of(f, 64);
    static const char *const words[9] = {"colour",  "precision", "precision", "data_parallel", "zero_stage",
                                         "12 GPUs", "0 GPUs",    "kept",      "global_batch"};
    spaces[0].axes = &unknown, spaces[1].axes = &range, spaces[2].axes = &empty, spaces[3].axes = &derived;
    spaces[4].axes = twice;
    for (size_t i = 0; i < 5; i++) spaces[i].axis_count = i == 4 ? 2 : 1;
    spaces[5].sizes = odd, spaces[6].sizes = none;
    spaces[5].size_count = spaces[6].size_count = 1;
    spaces[7].kept = MDOT_PLAN_KEPT_MAX + 1;
    spaces[8].global_batch = -1;
    for (size_t i = 0; i < 9; i++) {
        mdot_plan *plan = NULL;
        mdot_error err = {0};
        assert_int_equal(mdot_plan_create(f->contexts, 1, f->job, &spaces[i], &plan, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, words[i]) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, words[i]);
        assert_null(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counts_add_up),
        cmocka_unit_test(a_search_finds_what_plain_loops_find),
        cmocka_unit_test(a_calibrated_search_finds_what_corrected_loops_find),
        cmocka_unit_test(stages_are_the_best_of_all_splits),
        cmocka_unit_test(threads_do_not_change_a_plan),
        cmocka_unit_test(options_that_are_set_stay),
        cmocka_unit_test(a_search_ends_when_progress_returns_false),
        cmocka_unit_test(wrong_spaces_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("search", tests, set_up, tear_down);
}
