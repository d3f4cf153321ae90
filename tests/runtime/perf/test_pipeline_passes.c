/* test_pipeline_passes.c — runtime/perf/resolved_configuration.c: the times of pipelines, compared with pipelines that
 * are run pass by pass. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/resolved_configuration.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BASE .struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"

/* A job of one matmul in a block. The tests set the number of blocks and their loads. */
static mdot_job *make_job(void)
{
    const mdot_job_operator op = {.struct_size = sizeof op,
                                  .known = true,
                                  .block = 1,
                                  .type = "Linear",
                                  .setting = {[MDOT_SETTING_CHANNELS_IN] = 64, [MDOT_SETTING_CHANNELS_OUT] = 64},
                                  .parameters = 1e6,
                                  .per_sample = {{1e9, 1e7, 1e7}, {1e9, 1e7, 1e7}, {1e9, 1e7, 1e7}}};
    return predict_make_job(&op, 1);
}

enum { MAX_STAGES = 6, MAX_PARTS = 4, MAX_MICRO = 15, MAX_PASSES = MAX_PARTS * MAX_MICRO };

typedef struct pipeline {
    uint32_t stages, parts, micro, group;              /* micro-batches of a part before the next part */
    double load[MAX_STAGES];                           /* of a stage's forward pass */
    double done[2][MAX_STAGES * MAX_PARTS][MAX_MICRO]; /* end of a forward or backward pass; 0: not yet */
    double now[MAX_STAGES], ended[MAX_STAGES];         /* time, and passes done */
    double kept, most;                                 /* micro-batches that the first stage keeps, times parts */
} pipeline;

/* The pass of a stage's k-th turn: part and micro-batch. Backward passes visit the parts from the last one on. */
static void find_pass(const pipeline *p, uint32_t k, bool is_backward, uint32_t *out_part, uint32_t *out_micro)
{
    uint32_t start = k / (p->group * p->parts) * p->group, size = p->micro - start;
    if (size > p->group) size = p->group;
    *out_part = (k - start * p->parts) / size;
    *out_micro = start + (k - start * p->parts) % size;
    if (is_backward) *out_part = p->parts - 1 - *out_part;
}

/* Runs the next pass of a stage, if its operands exist. A backward pass takes twice as long as a forward one. */
static bool run_next(pipeline *p, uint32_t stage)
{
    uint32_t turn = (uint32_t)p->ended[stage], all = p->parts * p->micro, behind = p->stages - 1 - stage;
    uint32_t warm = p->parts > 1 ? 2 * behind + (p->parts - 1) * p->group : behind, part, micro;
    if (warm > all) warm = all;
    if (turn == 2 * all) return false;
    bool alternates = turn >= warm && turn < 2 * all - warm;
    bool is_backward = alternates ? (turn - warm) % 2 == 1 : turn >= warm;
    uint32_t k =
        !is_backward ? (alternates ? warm + (turn - warm) / 2 : turn) : (alternates ? (turn - warm) / 2 : turn - all);
    find_pass(p, k, is_backward, &part, &micro);
    uint32_t place = part * p->stages + stage, end = p->parts * p->stages - 1;
    bool is_first = !is_backward && place == 0;
    double needed = is_first       ? -1
                    : !is_backward ? p->done[0][place - 1][micro]
                    : place == end ? p->done[0][place][micro]
                                   : p->done[1][place + 1][micro];
    if (needed == 0) return false;
    p->now[stage] = fmax(p->now[stage], needed) + (is_backward ? 2 : 1) * p->load[stage];
    p->done[is_backward][place][micro] = p->now[stage];
    p->ended[stage]++;
    if (stage == 0) p->most = fmax(p->most, p->kept += is_backward ? -1 : 1);
    return true;
}

static void run(pipeline *p)
{
    for (bool runs = true; runs;) {
        runs = false;
        for (uint32_t s = 0; s < p->stages; s++)
            while (run_next(p, s)) runs = true;
    }
}

/* Any number of micro-batches runs on any number of stages and parts. The micro-steps and the kept micro-batches are
 * those of a pipeline that is run pass by pass, in Megatron's order (schedules.py), with groups of at least as many
 * micro-batches as stages. */
static void pipelines_take_the_time_of_their_passes(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    double *cost = job->analysis->sharding.cost;
    for (uint32_t stages = 2; stages <= MAX_STAGES; stages++)
        for (uint32_t parts = 1; parts <= MAX_PARTS; parts++)
            for (uint32_t micro = 1; micro <= MAX_MICRO; micro++) {
                mdot_configuration c = {BASE, .pipeline_parallel = stages, .virtual_stages = parts,
                                        .micro_batches = micro};
                rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
                rt_resolved_configuration r;
                configuration.c.batch = micro;
                job->info.block_count = stages;
                cost[RT_PIPELINE_BLOCKS] = stages;
                assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
                rt_resolve(job, &configuration, &r);
                pipeline p = {.stages = stages, .parts = parts, .micro = micro, .group = stages};
                while (p.group < micro && micro % p.group != 0 && micro % p.group < stages) p.group++;
                for (uint32_t s = 0; s < stages; s++) p.load[s] = 1;
                run(&p);
                assert_compare(p.ended[0], ==, 2 * parts * micro);
                assert_within(r.micro_steps, p.now[0] / 3 / parts, 1e-12);
                assert_within(r.in_flight, p.most / parts, 1e-12);
            }
    mdot_job_destroy(job);
}

/* The time of stages with these loads, run pass by pass. */
static double time_of(uint32_t stages, uint32_t micro, double first, double middle, double last)
{
    pipeline p = {.stages = stages, .parts = 1, .micro = micro, .group = stages};
    for (uint32_t s = 0; s < stages; s++) p.load[s] = s == 0 ? first : s == stages - 1 ? last : middle;
    run(&p);
    double time = 0;
    for (uint32_t s = 0; s < stages; s++) time = fmax(time, p.now[s] / 3);
    return time;
}

/* Exact, unless the first stage is the slowest of three or more, and those behind it differ. */
static void assert_follows(double predicted, uint32_t stages, uint32_t micro, double first, double last)
{
    double time = time_of(stages, micro, first, 2, last);
    bool is_exact = stages == 2 || first <= last || first <= 2;
    if (is_exact ? fabs(predicted - time) > 1e-9 : predicted < 0.86 * time || predicted > 1.02 * time)
        fail_msg("%u stages of %g, 2 and %g, %u micro-batches: %g, not %g", stages, first, last, micro, predicted,
                 time);
}

/* The same with stages of any loads, on the GPU and on the host: of 1, 2 or 4 blocks at the ends, 2 between them, an
 * embedding and a head. */
static void uneven_pipelines_take_the_time_of_their_passes(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const uint32_t ends[] = {1, 2, 4};
    static const double beside[] = {0, 1, 3};
    rt_sharding *sharding = &job->analysis->sharding;
    for (uint32_t kind = 0; kind < 81; kind++)
        for (uint32_t stages = 2; stages <= MAX_STAGES; stages++)
            for (uint32_t micro = 1; micro <= MAX_MICRO; micro += micro == 1 ? stages - 1 : 1) {
                mdot_configuration c = {BASE, .pipeline_parallel = stages, .micro_batches = micro};
                uint32_t first = ends[kind % 3], last = ends[kind / 3 % 3], blocks = first + last + 2 * (stages - 2);
                double before = beside[kind / 9 % 3], after = beside[kind / 27], loads[3] = {before, blocks, after};
                c.first_stage_blocks = first;
                c.last_stage_blocks = last;
                c.batch = micro;
                job->info.block_count = blocks;
                for (int p = 0; p < RT_PIPELINE_POSITIONS; p++) {
                    sharding->cost[p] = 1e6 * loads[p];
                    sharding->launches[p] = 10 * loads[RT_PIPELINE_POSITIONS - 1 - p];
                }
                sharding->launches[RT_PIPELINE_BLOCKS] = 10 * blocks;
                rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
                rt_resolved_configuration r;
                assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
                rt_resolve(job, &configuration, &r);
                double gpu = 0, host = 0;
                for (int p = 0; p < RT_PIPELINE_POSITIONS; p++) {
                    gpu += r.shard.of[p] * sharding->cost[p] / 1e6;
                    host += r.shard.of[p] * sharding->launches[p] / 10;
                }
                assert_follows(gpu * r.micro_steps, stages, micro, first + before, last + after);
                assert_follows(host * r.slowest_host * r.micro_steps, stages, micro, first + after, last + before);
            }
    mdot_job_destroy(job);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelines_take_the_time_of_their_passes),
        cmocka_unit_test(uneven_pipelines_take_the_time_of_their_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
