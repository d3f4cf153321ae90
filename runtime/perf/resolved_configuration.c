/* resolved_configuration.c — resolves a configuration against a job. */
#include "runtime/perf/resolved_configuration.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/framework.h"

#include <math.h>
#include <string.h>

static mdot_status check_experts(const mdot_configuration *c, const rt_experts *experts, mdot_error *err)
{
    if (c->expert_parallel > 1 && experts->common_count == 0)
        return BS_INVALID(err,
                          "--parallel ep is %u, but the job lacks experts, which are a matmul with several matrices "
                          "behind a TopK that routes tokens: leave --parallel ep at 1",
                          c->expert_parallel);
    if (experts->common_count % c->expert_parallel == 0) return MDOT_OK;
    return BS_INVALID(err, "--parallel ep is %u; it must divide the %llu experts of a layer", c->expert_parallel,
                      (unsigned long long)experts->common_count);
}

/* The blocks of the ends of a pipeline that the configuration sets, and the stages that share the others. */
typedef struct division {
    uint32_t first, last, given; /* given: first and last together */
    uint32_t sharing;
} division;

static division division_of(const mdot_configuration *c)
{
    division d = {c->first_stage_blocks % MDOT_STAGE_WITHOUT_BLOCKS, c->last_stage_blocks % MDOT_STAGE_WITHOUT_BLOCKS,
                  0, c->pipeline_parallel - (c->first_stage_blocks > 0) - (c->last_stage_blocks > 0)};
    d.given = d.first + d.last;
    return d;
}

/* Other stages have equal numbers of blocks, rounded up. */
static void divide_blocks(const mdot_job *job, const mdot_configuration *c, double out[RT_STAGES])
{
    out[RT_STAGE_FIRST] = out[RT_STAGE_MIDDLE] = out[RT_STAGE_LAST] = 1;
    if (c->pipeline_parallel == 1) return;
    division d = division_of(c);
    uint32_t blocks = job->info.block_count;
    double share = d.sharing > 0 ? (double)((blocks - d.given + d.sharing - 1) / d.sharing) : 0;
    out[RT_STAGE_FIRST] = (c->first_stage_blocks > 0 ? d.first : share) / blocks;
    out[RT_STAGE_MIDDLE] = share / blocks;
    out[RT_STAGE_LAST] = (c->last_stage_blocks > 0 ? d.last : share) / blocks;
}

static mdot_status check_stages(const mdot_configuration *c, uint32_t blocks, mdot_error *err)
{
    if (c->pipeline_blocks > 0 && c->pipeline_blocks != blocks)
        return BS_INVALID(err,
                          "the stages of the pipeline have %u blocks in all, and the job has %u: set numbers whose sum "
                          "is %u",
                          c->pipeline_blocks, blocks, blocks);
    if (c->pipeline_parallel == 1) return MDOT_OK;
    division d = division_of(c);
    if (d.given + d.sharing <= blocks && (d.sharing > 0 || d.given == blocks)) return MDOT_OK;
    if (d.given == 0)
        return BS_INVALID(err, "--parallel pp is %u; each stage needs a block, and the job has %u",
                          c->pipeline_parallel, blocks);
    return BS_INVALID(
        err,
        "the ends of the pipeline have %u and %u blocks, and %u other stages share the rest of %u blocks: "
        "set numbers that leave at least one for each of these stages, and none without them",
        d.first, d.last, d.sharing, blocks);
}

mdot_status rt_configuration_check(const rt_configuration *configuration, const mdot_job *job, mdot_error *err)
{
    const mdot_configuration *c = &configuration->c;
    const rt_sharding *sharding = &job->analysis->sharding;
    uint64_t common = sharding->common;
    if (c->recompute == MDOT_RECOMPUTE_BLOCKS && job->info.block_count == 0)
        return BS_INVALID(err, "--checkpoint is blocks, but the job lacks blocks: use selective or nothing");
    BS_TRY(check_stages(c, job->info.block_count, err));
    if (c->tensor_parallel > 1 && common == 0)
        return BS_INVALID(
            err, "--parallel tp needs matmuls that can be sharded, which the job lacks: leave --parallel tp at 1");
    if (common % c->tensor_parallel != 0)
        return BS_INVALID(
            err, "--parallel tp is %u; it must divide %llu, the common divisor of the job's channels and heads",
            c->tensor_parallel, (unsigned long long)common);
    if (c->offload_activations != 0 && job->info.block_count == 0)
        return BS_INVALID(
            err, "--offload-activations moves the tensors of one block after the other, but the job lacks blocks");
    if (c->loss != MDOT_LOSS_WHOLE && job->analysis->totals.logits == 0)
        return BS_INVALID(
            err,
            "--loss is %s, but the job has no cross-entropy of a matmul's result: read the network with its "
            "loss, or leave --loss at whole",
            c->loss == MDOT_LOSS_FUSED ? "fused" : "chunked");
    if (c->context_parallel > 1 && !job->analysis->totals.has_attention)
        return BS_INVALID(err,
                          "--parallel cp is %u, but the job lacks attention, whose sequences it divides: leave "
                          "--parallel cp at 1",
                          c->context_parallel);
    bool has_blocks = (double)c->virtual_stages * c->pipeline_parallel <= (double)job->info.block_count + 2;
    if (c->virtual_stages > 1 && !has_blocks)
        return BS_INVALID(err,
                          "--parallel vpp is %u on each of %u stages; each part needs a block, besides one for the "
                          "embedding and one for the head, and the job has %u",
                          c->virtual_stages, c->pipeline_parallel, job->info.block_count);
    return check_experts(c, &sharding->experts, err);
}

/* The stage of a pipeline that takes longest by the loads of the positions. The pipeline runs at its pace. */
typedef struct slowest {
    rt_stage stage;
    double load;    /* of the stage */
    double waiting; /* its waiting time relative to that in a pipeline of equal stages */
} slowest;

static double stage_load(const double load[RT_PIPELINE_POSITIONS], const double blocks[RT_STAGES], rt_stage stage)
{
    return blocks[stage] * load[RT_PIPELINE_BLOCKS] + (stage == RT_STAGE_FIRST) * load[RT_PIPELINE_BEFORE] +
           (stage == RT_STAGE_LAST) * load[RT_PIPELINE_AFTER];
}

/* While the pipeline fills and empties, the slowest stage waits for a pass of each other stage. It has as many passes
 * of its own meanwhile as there are stages behind it: forward ones, a third of its load, and then backward ones. (A
 * slow first stage before unequal ones waits up to a seventh of the step longer.) */
static slowest slowest_of(const mdot_configuration *c, const double load[RT_PIPELINE_POSITIONS],
                          const double blocks[RT_STAGES])
{
    slowest s = {.load = -1, .waiting = 1};
    for (rt_stage stage = RT_STAGE_FIRST; stage < RT_STAGES; stage++) {
        double own = stage_load(load, blocks, stage);
        if (own < s.load || (stage == RT_STAGE_MIDDLE && c->pipeline_parallel == 2)) continue;
        s.stage = stage;
        s.load = own;
    }
    double others = load[RT_PIPELINE_BEFORE] + load[RT_PIPELINE_BLOCKS] + load[RT_PIPELINE_AFTER] - s.load;
    double stages = c->pipeline_parallel - 1.0, count = s.stage == RT_STAGE_FIRST ? stages : s.stage == RT_STAGE_MIDDLE;
    double behind = s.stage == RT_STAGE_FIRST ? others : count * stage_load(load, blocks, RT_STAGE_LAST);
    double own = count * s.load / 3, saved = behind - fmax(behind - own, 0) - fmax(behind - 2 * own, 0);
    if (s.load > 0)
        s.waiting = (others - saved * fmin(c->micro_batches - 1.0, count) / fmax(count, 1)) / (stages * s.load);
    return s;
}

static rt_shard shard_of(const mdot_job *job, const rt_configuration *configuration, const double blocks[RT_STAGES])
{
    const mdot_configuration *c = &configuration->c;
    rt_shard shard = {.tensor = c->tensor_parallel, .experts = c->expert_parallel, .of = {1, 1, 1}};
    if (job->analysis->totals.has_squares) shard.square_batch = (double)configuration->micro_batch;
    if (c->pipeline_parallel == 1) return shard;
    rt_stage stage = slowest_of(c, job->analysis->sharding.cost, blocks).stage;
    shard.of[RT_PIPELINE_BEFORE] = stage == RT_STAGE_FIRST;
    shard.of[RT_PIPELINE_BLOCKS] = blocks[stage];
    shard.of[RT_PIPELINE_AFTER] = stage == RT_STAGE_LAST;
    return shard;
}

/* Compiled code recomputes like a selective checkpoint. A program's own checkpoints take precedence. */
static rt_activation_case activation_case_of(const mdot_configuration *c, bool has_checkpoints)
{
    rt_activation_case activation_case = {.type = rt_activation_type_of(c->precision), .attention = c->attention};
    activation_case.is_inference = c->mode == MDOT_MODE_INFERENCE;
    if (activation_case.is_inference) return activation_case;
    bool is_own = c->recompute == MDOT_RECOMPUTE_NOTHING && c->compiled != 0 && !has_checkpoints;
    activation_case.recompute = is_own ? MDOT_RECOMPUTE_SELECTIVE : c->recompute;
    activation_case.loss = c->loss;
    return activation_case;
}

/* Autocast and mixed precision may surround a program with fp32 weights, and tf32 is a setting of its matmuls. Mixed
 * precision and autocast may also train a program with bf16 weights. Other precisions differ from the program's. */
static bool contradicts(mdot_precision precision, mdot_precision programs)
{
    if (precision == MDOT_PRECISION_PYTORCH || precision == programs) return false;
    if (programs == MDOT_PRECISION_PYTORCH) return precision == MDOT_PRECISION_BF16;
    return programs != MDOT_PRECISION_BF16 || !(rt_is_mixed(precision) || rt_is_autocast(precision));
}

enum { SECOND_PYTORCH = 200 }; /* the version with torch.compile and a fused attention */

/* Compiled programs stay compiled. Replaces the precision PYTORCH by the program's, and the attention and framework
 * PROGRAM by the program's, or by FLASH and PYTORCH if they are unknown. PyTorch 1 has neither compiler nor FLASH. */
static rt_configuration follow_program(const mdot_job *job, const rt_configuration *configuration, bool *out_differs)
{
    rt_configuration followed = *configuration;
    mdot_configuration *c = &followed.c;
    mdot_attention programs = MDOT_ATTENTION_PROGRAM;
    *out_differs = false;
    if (job->program != NULL) {
        mdot_precision precision = job->program->program.precision;
        programs = job->program->program.attention;
        *out_differs = contradicts(c->precision, precision);
        if (c->precision == MDOT_PRECISION_PYTORCH) c->precision = precision;
    }
    bool is_first = c->torch > 0 && c->torch < SECOND_PYTORCH;
    if ((job->info.notes & MDOT_JOB_COMPILED) != 0 && !is_first) c->compiled = 1;
    bool is_known = programs != MDOT_ATTENTION_PROGRAM;
    if (c->attention == MDOT_ATTENTION_PROGRAM)
        c->attention = is_first ? MDOT_ATTENTION_EAGER : is_known ? programs : MDOT_ATTENTION_FLASH;
    if (is_known && c->attention != programs && job->analysis->totals.has_attention) *out_differs = true;
    if (c->framework == MDOT_FRAMEWORK_PROGRAM) {
        uint32_t framework = job->program != NULL ? job->program->program.framework : 0;
        bool is_stated = framework != MDOT_FRAMEWORK_PROGRAM && framework <= MDOT_FRAMEWORK_MEGATRON;
        c->framework = is_stated ? (mdot_framework)framework : MDOT_FRAMEWORK_PYTORCH;
    }
    return followed;
}

double rt_waiting_steps(const mdot_configuration *c)
{
    double stages = c->pipeline_parallel, parts = c->virtual_stages > 1 ? c->virtual_stages : 1;
    double idle = fmax(stages - c->micro_batches, 0), waiting = idle + (stages - 1 - idle) / parts;
    return c->schedule == MDOT_SCHEDULE_ZERO_BUBBLE ? waiting / 3 : waiting;
}

/* Micro-batches in a group that an interleaved stage computes with one part before the next part: as many as stages, or
 * more if the last group would otherwise be too small to fill the pipeline. */
static double group_of(const mdot_configuration *c)
{
    uint32_t group = c->pipeline_parallel;
    while (group < c->micro_batches && c->micro_batches % group != 0 && c->micro_batches % group < c->pipeline_parallel)
        group++;
    return group;
}

/* A stage keeps the activations of as many micro-batches as there are stages from it on. An interleaved one with v
 * parts runs two passes of a part for each stage behind it, and v - 1 groups, before the first backward pass
 * (Korthikanti et al., arXiv 2205.05198, section 4.2.3; Megatron's get_pp_rank_microbatches). */
static double in_flight_of(const mdot_configuration *c, double stage, double steps)
{
    double behind = c->pipeline_parallel - 1 - stage, parts = c->virtual_stages, maximum = behind + 1;
    if (parts > 1) maximum = (2 * behind + (parts - 1) * group_of(c) + 1) / parts;
    return maximum < steps ? maximum : steps;
}

/* The last part of an interleaved pipeline's last stage keeps one micro-batch, and the earlier parts a whole group. The
 * head may take the place of blocks there, so that the stage's blocks lie in the earlier parts. */
static double in_flight_at_end(const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    double parts = c->virtual_stages, last = resolved->blocks[RT_STAGE_LAST];
    double share = fmax(fmax(resolved->blocks[RT_STAGE_FIRST], resolved->blocks[RT_STAGE_MIDDLE]), last);
    double in_last = fmax(last - (parts - 1) * share / parts, 0);
    if (parts == 1 || last == 0) return in_flight_of(c, c->pipeline_parallel - 1, resolved->steps);
    return ((last - in_last) * fmin(group_of(c), resolved->steps) + in_last) / last;
}

/* Matmuls in half precision reach this part of the peak that those in fp32 reach. */
#define HALF_EFFICIENCY 0.5

static rt_rates other_rates_of(const rt_configuration *configuration)
{
    rt_configuration other = *configuration;
    bool is_half = rt_is_half(configuration->c.precision);
    other.c.precision = is_half ? MDOT_PRECISION_FP32 : MDOT_PRECISION_AMP;
    rt_rates rates = rt_rates_of(&other);
    for (int rate = RT_RATE_VECTOR + 1; rate < RT_RATE_COUNT; rate++)
        rates.ms_per_flop[rate] *= is_half ? HALF_EFFICIENCY : 1 / HALF_EFFICIENCY;
    return rates;
}

/* GPU and host have a slowest stage each: the host's has the most launches. */
static void fill_pipeline(const mdot_job *job, const mdot_configuration *c, rt_resolved_configuration *out)
{
    out->micro_steps = out->steps;
    out->slowest_host = 1;
    if (c->pipeline_parallel == 1) return;
    const rt_sharding *sharding = &job->analysis->sharding;
    slowest gpu = slowest_of(c, sharding->cost, out->blocks), host = slowest_of(c, sharding->launches, out->blocks);
    out->micro_steps += gpu.waiting * rt_waiting_steps(c);
    if (host.load > 0)
        out->slowest_host = host.load / stage_load(sharding->launches, out->blocks, gpu.stage) *
                            (out->steps + host.waiting * rt_waiting_steps(c)) / out->micro_steps;
}

void rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out_resolved)
{
    bool is_open = configuration->c.framework == MDOT_FRAMEWORK_PROGRAM;
    memset(out_resolved, 0, sizeof *out_resolved); /* padding, too, because corrections compare bytes */
    out_resolved->configuration = follow_program(job, configuration, &out_resolved->differs_from_program);
    configuration = &out_resolved->configuration;
    bool is_stated = job->program != NULL && job->program->program.framework != MDOT_FRAMEWORK_PROGRAM;
    out_resolved->assumes_framework = is_open && !is_stated;
    out_resolved->has_half_weights = job->program != NULL && job->program->program.precision == MDOT_PRECISION_BF16;
    out_resolved->recomputes_as_program = job->analysis->totals.is_recomputed;
    const mdot_configuration *c = &configuration->c;
    divide_blocks(job, c, out_resolved->blocks);
    out_resolved->shard = shard_of(job, configuration, out_resolved->blocks);
    out_resolved->steps = (double)c->accumulate * c->micro_batches;
    fill_pipeline(job, c, out_resolved);
    out_resolved->in_flight = in_flight_of(c, 0, out_resolved->steps);
    out_resolved->sequence = c->context_parallel;
    out_resolved->replicated = c->sequence_parallel != 0 ? c->tensor_parallel : 1;
    out_resolved->fused = rt_framework_fused(c);
    out_resolved->rates = out_resolved->other_rates = rt_rates_of(configuration);
    out_resolved->runs_as_program =
        job->analysis->totals.mixes_types && job->program != NULL && c->precision == job->program->program.precision;
    if (out_resolved->runs_as_program) out_resolved->other_rates = other_rates_of(configuration);
    out_resolved->widths = rt_widths_of(c, out_resolved->has_half_weights);
    out_resolved->activation_case = activation_case_of(c, out_resolved->recomputes_as_program);
}

rt_resolved_configuration rt_resolve_stage(const rt_resolved_configuration *resolved, rt_stage stage)
{
    const mdot_configuration *c = &resolved->configuration.c;
    rt_resolved_configuration made = *resolved;
    made.shard.of[RT_PIPELINE_BEFORE] = stage == RT_STAGE_FIRST || c->pipeline_parallel == 1;
    made.shard.of[RT_PIPELINE_AFTER] = stage == RT_STAGE_LAST || c->pipeline_parallel == 1;
    made.shard.of[RT_PIPELINE_BLOCKS] = resolved->blocks[stage];
    made.in_flight =
        stage == RT_STAGE_LAST ? in_flight_at_end(resolved) : in_flight_of(c, (double)stage, resolved->steps);
    return made;
}

rt_resolved_configuration rt_with_micro_batch(const rt_resolved_configuration *resolved, int64_t micro_batch)
{
    rt_resolved_configuration variant = *resolved;
    variant.configuration.micro_batch = micro_batch;
    if (variant.shard.square_batch > 0) variant.shard.square_batch = (double)micro_batch;
    return variant;
}

rt_resolved_configuration rt_with_kernels_of(const rt_resolved_configuration *resolved,
                                             const rt_resolved_configuration *source)
{
    rt_resolved_configuration variant = *resolved;
    mdot_configuration *c = &variant.configuration.c;
    rt_copy_kernels(c, &source->configuration.c);
    variant.fused = source->fused;
    variant.rates = source->rates;
    variant.widths = rt_widths_of(c, resolved->has_half_weights);
    variant.activation_case = activation_case_of(c, resolved->recomputes_as_program);
    return variant;
}
