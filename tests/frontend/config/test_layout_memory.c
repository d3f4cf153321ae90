/* test_layout_memory.c — the memory of language models under the layouts of Megatron, DeepSpeed and FSDP, beside counts
 * by hand.
 *
 * Parameters of a layer are counted by their shapes. Megatron's activations follow the formula of Korthikanti et al.
 * (arXiv 2205.05198, table 2), for fused attention, norms and gates: a layer keeps the operand of each norm and of each
 * matmul, and what attention and gate read. */
#include "mdot/mdotjob.h"
#include "runtime/perf/peak_memory.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NETWORKS = 5, LENGTH = 2048 };

typedef struct network {
    int hidden, ffn, layers, heads, groups, vocabulary, experts;
    bool is_tied;
} network;

/* The sizes of Llama 2 7B and Llama 3.2 1B, and others of no published network. */
static const network networks[NETWORKS] = {{4096, 11008, 32, 32, 32, 32000, 0, false},
                                           {2048, 8192, 16, 32, 8, 128256, 0, true},
                                           {1536, 4608, 24, 12, 4, 50304, 0, false},
                                           {2560, 6912, 40, 20, 20, 64000, 0, true},
                                           {1024, 2816, 12, 16, 8, 32000, 8, false}};

static int use_shipped_jobs(void **state)
{
    (void)state;
    return setenv("MDOT_JOBS", MDOT_SOURCE_DIR "/weights/jobs", 1);
}

static mdot_job *job_of(const network *n, int64_t length)
{
    char text[1000], experts[100] = "";
    if (n->experts > 0)
        snprintf(experts, sizeof experts, ", \"num_local_experts\": %d, \"num_experts_per_tok\": 2", n->experts);
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": %d, "
             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"vocab_size\": %d, "
             "\"max_position_embeddings\": 4096, \"tie_word_embeddings\": %s%s}",
             n->experts > 0 ? "mixtral" : "llama", n->hidden, n->ffn, n->layers, n->heads, n->groups, n->vocabulary,
             n->is_tied ? "true" : "false", experts);
    const mdot_dim_binding dim = {.name = "length", .value = length};
    const mdot_job_options options = {.struct_size = sizeof options, .dims = &dim, .dim_count = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_read_bytes(text, strlen(text), "config.json", &options, &job, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return job;
}

/* False if the configuration is refused. */
static bool measure(const mdot_job *job, mdot_configuration c, rt_resolved_configuration *out_resolved,
                    rt_stage_memory *out)
{
    rt_configuration configuration;
    rt_gpu_names names = {0};
    c.struct_size = sizeof c;
    c.gpu = "B200";
    if (rt_configuration_read(&c, 0, &names, &configuration, NULL) != MDOT_OK) return false;
    if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) return false;
    rt_resolve(job, &configuration, out_resolved);
    *out = rt_measure_stages(job, out_resolved);
    return true;
}

static double degree(uint32_t value) { return value > 0 ? value : 1; }

/* ---- Weights, gradients and optimizer ---------------------------------------------------------------------------- */

typedef struct elements {
    double others, experts;
} elements;

static double attention_of(const network *n)
{
    return 2.0 * n->hidden * n->hidden * (1 + (double)n->groups / n->heads);
}

/* Elements on one GPU of the first or the last stage. */
static elements stage_of(const network *n, const mdot_configuration *c, bool is_first)
{
    double tensor = degree(c->tensor_parallel), stages = degree(c->pipeline_parallel), table = n->vocabulary;
    uint32_t first = c->first_stage_blocks, last = c->last_stage_blocks;
    double given = (double)(first % MDOT_STAGE_WITHOUT_BLOCKS) + last % MDOT_STAGE_WITHOUT_BLOCKS;
    double sharing = stages - (first > 0) - (last > 0), share = sharing > 0 ? ceil((n->layers - given) / sharing) : 0;
    uint32_t own = is_first ? first : last;
    double blocks = stages == 1 ? n->layers : own > 0 ? own % MDOT_STAGE_WITHOUT_BLOCKS : share;
    table *= n->hidden / tensor;
    double mlp = 3.0 * n->hidden * n->ffn;
    elements e = {.experts = blocks * n->experts * mlp / tensor / degree(c->expert_parallel)};
    double dense = attention_of(n) + (n->experts == 0 ? mlp : 0), router = (double)n->experts * n->hidden;
    e.others = blocks * (dense / tensor + router + 2.0 * n->hidden);
    if (is_first) e.others += table;
    if (!is_first || stages == 1) e.others += n->hidden + (n->is_tied && stages == 1 ? 0 : table);
    return e;
}

static double sum_of(elements e) { return e.others + e.experts; }

/* A GPU's part of what ZeRO shards: experts have fewer copies. */
static double part_of(elements e, const mdot_configuration *c)
{
    double copies = degree(c->data_parallel) * degree(c->context_parallel);
    return e.others / copies / degree(c->expert_parallel) + e.experts / copies;
}

#define MEGATRON                                                                                                       \
    .precision = MDOT_PRECISION_MIXED_BF16, .gradient_type = MDOT_NUMBER_FP32, .optimizer = MDOT_OPTIMIZER_ADAM_FUSED, \
    .framework = MDOT_FRAMEWORK_MEGATRON
#define DEEPSPEED .precision = MDOT_PRECISION_MIXED_BF16, .optimizer = MDOT_OPTIMIZER_ADAMW, .accumulate = 2
#define PIPELINE(stages, batches) .pipeline_parallel = (stages), .micro_batches = (batches), .batch = (batches)

static const mdot_configuration layouts[] = {
    {MEGATRON, .batch = 2},
    {MEGATRON, .batch = 2, .tensor_parallel = 2},
    {MEGATRON, .batch = 2, .tensor_parallel = 4, .sequence_parallel = 1},
    {MEGATRON, .batch = 1, .data_parallel = 4, .zero_stage = 1},
    {MEGATRON, .batch = 1, .tensor_parallel = 2, .sequence_parallel = 1, .data_parallel = 4, .zero_stage = 1},
    {MEGATRON, .batch = 1, .context_parallel = 2},
    {MEGATRON, .batch = 1, .context_parallel = 2, .zero_stage = 1},
    {MEGATRON, .batch = 1, .context_parallel = 4, .tensor_parallel = 2, .sequence_parallel = 1, .zero_stage = 1},
    {MEGATRON, PIPELINE(2, 4)},
    {MEGATRON, PIPELINE(4, 8)},
    {MEGATRON, PIPELINE(4, 2)},
    {MEGATRON, PIPELINE(2, 4), .virtual_stages = 2},
    {MEGATRON, PIPELINE(4, 8), .virtual_stages = 2},
    {MEGATRON, PIPELINE(2, 8), .virtual_stages = 4},
    {MEGATRON, PIPELINE(2, 4), .tensor_parallel = 2, .sequence_parallel = 1, .data_parallel = 2, .zero_stage = 1},
    {MEGATRON, PIPELINE(2, 4), .tensor_parallel = 4, .sequence_parallel = 1},
    {MEGATRON, PIPELINE(2, 4), .context_parallel = 2, .zero_stage = 1},
    {MEGATRON, PIPELINE(3, 6), .first_stage_blocks = 2, .last_stage_blocks = 2},
    {MEGATRON, PIPELINE(4, 8), .first_stage_blocks = 3},
    {MEGATRON, PIPELINE(4, 8), .last_stage_blocks = 1},
    {MEGATRON, PIPELINE(4, 8), .first_stage_blocks = MDOT_STAGE_WITHOUT_BLOCKS,
     .last_stage_blocks = MDOT_STAGE_WITHOUT_BLOCKS},
    {MEGATRON, PIPELINE(3, 3), .last_stage_blocks = MDOT_STAGE_WITHOUT_BLOCKS, .tensor_parallel = 2},
    {MEGATRON, .batch = 1, .expert_parallel = 4},
    {MEGATRON, .batch = 1, .expert_parallel = 4, .zero_stage = 1},
    {MEGATRON, .batch = 1, .expert_parallel = 2, .tensor_parallel = 2, .data_parallel = 2, .zero_stage = 1},
    {MEGATRON, .batch = 1, .expert_parallel = 2, .context_parallel = 2, .zero_stage = 1},
    {MEGATRON, PIPELINE(2, 4), .expert_parallel = 4, .data_parallel = 2, .zero_stage = 1},
    {DEEPSPEED, .batch = 8},
    {DEEPSPEED, .batch = 8, .data_parallel = 8, .zero_stage = 1},
    {DEEPSPEED, .batch = 8, .data_parallel = 8, .zero_stage = 2},
    {DEEPSPEED, .batch = 8, .data_parallel = 8, .zero_stage = 2, .offload = MDOT_OFFLOAD_OPTIMIZER},
    {DEEPSPEED, .batch = 8, .data_parallel = 3, .zero_stage = 2},
    {DEEPSPEED, PIPELINE(2, 8), .data_parallel = 2, .zero_stage = 1},
    {DEEPSPEED, .batch = 8, .expert_parallel = 2, .data_parallel = 2, .zero_stage = 2},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void expect(double got, double wanted, double tolerance, const char *what, int n, int layout)
{
    if (fabs(got - wanted) > tolerance * wanted)
        fail_msg("network %d, layout %d, %s: %.0f bytes, not %.0f (%.3f)", n, layout, what, got, wanted, got / wanted);
}

/* Weights have two bytes, gradients four or two, master weights and Adam's two moments twelve together. DeepSpeed's
 * stage 2 has a bucket of 5e8 gradients. */
static void parts_are_those_of_the_shapes(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int i = 0; i < NETWORKS; i++) {
        mdot_job *job = job_of(&networks[i], LENGTH);
        for (int k = 0; k < LAYOUTS; k++) {
            const mdot_configuration *c = &layouts[k];
            rt_resolved_configuration resolved;
            rt_stage_memory m;
            if (!measure(job, *c, &resolved, &m)) continue;
            for (int last = 0; last <= (c->pipeline_parallel > 1); last++) {
                const rt_memory *got = last ? &m.last : &m.first;
                elements e = stage_of(&networks[i], c, !last);
                double shard = part_of(e, c), bucket = c->zero_stage == 2 ? 2 * 5e8 : 0;
                double gradients = c->gradient_type == MDOT_NUMBER_FP32 ? 4 : 2;
                expect(got->weights, 2 * sum_of(e), 1e-3, "weights", i, k);
                expect(got->gradients, gradients * (c->zero_stage >= 2 ? shard : sum_of(e)) + bucket, 1e-3, "gradients",
                       i, k);
                double state_bytes = 12 * (c->zero_stage >= 1 ? shard : sum_of(e));
                if (c->offload == MDOT_OFFLOAD_OPTIMIZER) state_bytes = 0;
                expect(got->optimizer, state_bytes, 1e-3, "optimizer", i, k);
                compared++;
            }
        }
        mdot_job_destroy(job);
    }
    assert_compare(compared, >, 150);
}

/* ---- Activations ------------------------------------------------------------------------------------------------- */

/* Bytes that a layer keeps for a token: operands of two norms and of the matmuls behind them stay whole; queries, keys,
 * values, attention's result, and gate, up and their product are divided. */
static double layer_bytes(const network *n, const mdot_configuration *c)
{
    double tensor = degree(c->tensor_parallel), keys = 2.0 * n->hidden * n->groups / n->heads;
    double whole = 4 * 2.0 * n->hidden / (c->sequence_parallel != 0 ? tensor : 1);
    return whole + (2 * (2.0 * n->hidden + keys) + 6.0 * n->ffn) / tensor;
}

/* Megatron's first stage, which has no logits: the layers of the micro-batches that it keeps. The backward pass adds at
 * most a layer's bytes at once. */
static void fused_kernels_keep_what_megatrons_formula_says(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int i = 0; i < NETWORKS; i++) {
        const network *n = &networks[i];
        if (n->experts > 0) continue;
        mdot_job *job = job_of(n, LENGTH);
        for (int k = 0; k < LAYOUTS; k++) {
            mdot_configuration c = layouts[k];
            rt_resolved_configuration resolved;
            rt_stage_memory m;
            if (c.pipeline_parallel <= 1 || !measure(job, c, &resolved, &m)) continue;
            if (c.framework != MDOT_FRAMEWORK_MEGATRON || resolved.blocks[RT_STAGE_FIRST] == 0) continue;
            double tokens = (double)resolved.configuration.micro_batch * LENGTH / degree(c.context_parallel);
            double layers = resolved.blocks[RT_STAGE_FIRST] * n->layers * resolved.in_flight;
            double kept = tokens * layers * layer_bytes(n, &c), got = m.first.pass_activations;
            expect(got, kept, 0.03 + 1.0 / n->layers, "activations", i, k);
            if (got < 0.97 * kept) expect(got, kept, 0.03, "activations", i, k);
            c.framework = MDOT_FRAMEWORK_PYTORCH; /* which composes norms and gates */
            assert_true(measure(job, c, &resolved, &m));
            assert_compare(m.first.pass_activations, >, 1.2 * got);
            compared++;
        }
        mdot_job_destroy(job);
    }
    assert_compare(compared, >, 30);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

static double largest_of(const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration resolved;
    rt_stage_memory m;
    return measure(job, c, &resolved, &m) ? (double)rt_sum_memory(&m.largest) : -1;
}

/* Beside each layout: more GPUs of tensor or context parallelism, a further ZeRO stage, fused kernels and recomputed
 * blocks never take more memory, and a larger micro-batch never takes less. DeepSpeed's bucket of stage 2 is left out.
 */
static void layouts_are_ordered(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int i = 0; i < NETWORKS; i++) {
        mdot_job *job = job_of(&networks[i], LENGTH);
        for (int k = 0; k < LAYOUTS; k++) {
            const mdot_configuration *c = &layouts[k];
            mdot_configuration smaller[5], larger = *c;
            double before = largest_of(job, *c);
            if (before < 0) continue;
            for (int s = 0; s < 5; s++) smaller[s] = *c;
            smaller[0].tensor_parallel = 2 * (uint32_t)degree(c->tensor_parallel);
            smaller[1].context_parallel = 2 * (uint32_t)degree(c->context_parallel);
            smaller[2].zero_stage = c->zero_stage == 0 ? 1 : c->zero_stage;
            smaller[3].framework = MDOT_FRAMEWORK_TRANSFORMER_ENGINE;
            smaller[4].recompute = MDOT_RECOMPUTE_BLOCKS;
            for (int s = 0; s < 5; s++) {
                double after = largest_of(job, smaller[s]);
                if (after > before * (1 + 1e-9))
                    fail_msg("network %d, layout %d, %d: %.0f, %.0f", i, k, s, before, after);
                compared += after >= 0;
            }
            larger.batch *= 2;
            if (largest_of(job, larger) < before) fail_msg("network %d, layout %d: a larger batch", i, k);
        }
        mdot_job_destroy(job);
    }
    assert_compare(compared, >, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_those_of_the_shapes),
        cmocka_unit_test(fused_kernels_keep_what_megatrons_formula_says),
        cmocka_unit_test(layouts_are_ordered),
    };
    return cmocka_run_group_tests(tests, use_shipped_jobs, NULL);
}
