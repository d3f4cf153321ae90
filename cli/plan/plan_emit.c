/* plan_emit.c — launch settings of a layout: a job file of torchtitan, arguments of Megatron-LM, or torchrun with
 * arguments of the transformers' Trainer. Names and values are those of the programs' documentation in 2026. */
#include "cli/plan/plan_request.h"

#include <inttypes.h>
#include <stdio.h>

const char *const plan_emit_names[] = {"torchtitan", "torchrun", "megatron", NULL};
enum { TORCHTITAN, TORCHRUN, MEGATRON };

typedef struct fp8_recipe {
    mdot_precision precision;
    const char *torchtitan, *megatron;
} fp8_recipe;

static const fp8_recipe *fp8_recipe_of(mdot_precision precision)
{
    static const fp8_recipe recipes[] = {
        {MDOT_PRECISION_FP8, "float8]\nenable_fsdp_float8_all_gather = true", "hybrid --fp8-recipe tensorwise"},
        {MDOT_PRECISION_FP8_ROWWISE, "float8]\nrecipe_name = \"rowwise\"", "hybrid --fp8-recipe tensorwise"},
        {MDOT_PRECISION_MXFP8, "mx]\nrecipe_name = \"mxfp8_cublas\"", "hybrid --fp8-recipe mxfp8"},
        {MDOT_PRECISION_FP8_BLOCKWISE,
         "float8]\n# torchao has no recipe with blocks; rowwise comes nearest\nrecipe_name = \"rowwise\"",
         "e4m3 --fp8-recipe blockwise"}};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (recipes[i].precision == precision) return &recipes[i];
    return NULL;
}

typedef struct launch {
    const mdot_configuration *c;
    uint32_t tensor, pipeline, context, experts, virtual_stages, nodes, node_gpus, passes;
    uint32_t workers; /* groups of GPUs with a batch each */
    int64_t micro_batch, samples, length, steps;
    mdot_precision precision;
    const fp8_recipe *fp8; /* NULL: other precisions */
    bool is_fp16, is_16_bit;
} launch;

static uint32_t degree(uint32_t value) { return value > 0 ? value : 1; }

static launch launch_of(const plan_request *r, const plan_answers *answers)
{
    const plan_row *row = answers->recommended;
    const mdot_configuration *c = &row->layout.configuration;
    bool is_left = c->precision == MDOT_PRECISION_PYTORCH; /* to the program */
    mdot_precision p = is_left ? cli_choices_of(answers->job).precision : c->precision;
    launch l = {.c = c,
                .tensor = degree(c->tensor_parallel),
                .pipeline = degree(c->pipeline_parallel),
                .context = degree(c->context_parallel),
                .experts = degree(c->expert_parallel),
                .virtual_stages = degree(c->virtual_stages),
                .nodes = degree(c->node_count),
                .samples = (int64_t)row->layout.samples,
                .length = (int64_t)answers->tokens_per_sample,
                .steps = r->run.samples > 0 ? (int64_t)row->cost.steps : 0,
                .precision = p,
                .fp8 = fp8_recipe_of(p),
                .is_fp16 = p == MDOT_PRECISION_AMP_FP16 || p == MDOT_PRECISION_MIXED_FP16,
                .is_16_bit = p != MDOT_PRECISION_FP32 && p != MDOT_PRECISION_TF32 && p != MDOT_PRECISION_PYTORCH};
    l.node_gpus = (uint32_t)c->gpu_count / l.nodes;
    l.workers = (uint32_t)c->gpu_count / (l.tensor * l.pipeline * l.context);
    l.micro_batch = c->batch / (l.pipeline > 1 ? degree(c->micro_batches) : 1);
    l.passes = degree(c->accumulate);
    return l;
}

static void print_torchtitan(const launch *l)
{
    static const char *const modes[] = {"none", "full", "selective"};
    const mdot_configuration *c = l->c;
    bool shards = c->zero_stage > 0;
    printf("# torchrun --nnodes %u --nproc-per-node %u -m torchtitan.train --job.config_file THIS_FILE\n", l->nodes,
           l->node_gpus);
    if (c->zero_stage == 1 || c->zero_stage == 2)
        printf("# ZeRO stage %u: FSDP2 without a second gather of the weights comes nearest.\n", c->zero_stage);
    printf("[training]\nlocal_batch_size = %" PRId64 "\nglobal_batch_size = %" PRId64 "\n", c->batch, l->samples);
    printf("seq_len = %" PRId64 "\n", l->length);
    if (l->steps > 0) printf("steps = %" PRId64 "\n", l->steps);
    printf("mixed_precision_param = \"%s\"\n", l->is_16_bit ? "bfloat16" : "float32");
    if (l->precision == MDOT_PRECISION_BF16) puts("dtype = \"bfloat16\"");
    printf("\n[parallelism]\ndata_parallel_replicate_degree = %u\ndata_parallel_shard_degree = %u\n",
           shards ? 1 : l->workers, shards ? l->workers : 1);
    printf("fsdp_reshard_after_forward = \"%s\"\n", c->zero_stage == 3 && c->keep_gathered == 0 ? "always" : "never");
    printf("tensor_parallel_degree = %u\ncontext_parallel_degree = %u\nexpert_parallel_degree = %u\n", l->tensor,
           l->context, l->experts);
    printf("pipeline_parallel_degree = %u\n", l->pipeline);
    if (l->pipeline > 1)
        printf("pipeline_parallel_schedule = \"%s\"\npipeline_parallel_microbatch_size = %" PRId64 "\n",
               c->schedule == MDOT_SCHEDULE_ZERO_BUBBLE ? "InterleavedZeroBubble"
               : l->virtual_stages > 1                  ? "Interleaved1F1B"
                                                        : "1F1B",
               l->micro_batch);
    if (c->first_stage_blocks > 0)
        printf(
            "# mdot's first stage has %u blocks, and the last %u: set pipeline_parallel_first_stage_less_layers and\n"
            "# pipeline_parallel_last_stage_less_layers to the differences from the other stages\n",
            c->first_stage_blocks, c->last_stage_blocks);
    printf("\n[activation_checkpoint]\nmode = \"%s\"\n", modes[c->recompute]);
    printf("\n[compile]\nenable = %s\n", c->compiled != 0 ? "true" : "false");
    if (l->fp8 != NULL) printf("\n[quantize.linear.%s\n", l->fp8->torchtitan);
}

static void print_megatron(const launch *l)
{
    const mdot_configuration *c = l->c;
    printf("torchrun --nnodes %u --nproc-per-node %u pretrain_gpt.py", l->nodes, l->node_gpus);
    printf(" \\\n  --tensor-model-parallel-size %u --pipeline-model-parallel-size %u", l->tensor, l->pipeline);
    printf(" \\\n  --context-parallel-size %u --expert-model-parallel-size %u", l->context, l->experts);
    if (l->virtual_stages > 1) printf(" --num-virtual-stages-per-pipeline-rank %u", l->virtual_stages);
    if (c->first_stage_blocks > 0)
        printf(" \\\n  --decoder-first-pipeline-num-layers %u --decoder-last-pipeline-num-layers %u",
               c->first_stage_blocks, c->last_stage_blocks);
    if (c->sequence_parallel != 0) printf(" --sequence-parallel");
    printf(" \\\n  --micro-batch-size %" PRId64 " --global-batch-size %" PRId64, l->micro_batch, l->samples);
    printf(" --seq-length %" PRId64, l->length);
    if (l->steps > 0) printf(" --train-iters %" PRId64, l->steps);
    if (l->is_16_bit) printf(" \\\n  --%s", l->is_fp16 ? "fp16" : "bf16");
    if (l->fp8 != NULL) printf(" --fp8-format %s", l->fp8->megatron);
    if (c->zero_stage > 0) printf(" \\\n  --use-distributed-optimizer");
    if (c->zero_stage > 1)
        printf(" --use-megatron-fsdp --data-parallel-sharding-strategy %s",
               c->zero_stage == 2 ? "optim_grads" : "optim_grads_params");
    if (c->recompute == MDOT_RECOMPUTE_BLOCKS)
        printf(" \\\n  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
    if (c->recompute == MDOT_RECOMPUTE_SELECTIVE) printf(" \\\n  --recompute-granularity selective");
    if (c->offload != MDOT_OFFLOAD_NOTHING) printf(" --optimizer-cpu-offload");
    puts("");
}

static void print_torchrun(const launch *l)
{
    static const char *const strategies[] = {NULL, "shard_grad_op", "shard_grad_op", "full_shard"};
    const mdot_configuration *c = l->c;
    printf("torchrun --nnodes %u --nproc-per-node %u", l->nodes, l->node_gpus);
    if (l->nodes > 1) printf(" --rdzv-backend c10d --rdzv-endpoint \"$HEAD_NODE:29500\"");
    printf(" train.py \\\n  --per_device_train_batch_size %" PRId64 " --gradient_accumulation_steps %u", c->batch,
           l->passes);
    if (l->steps > 0) printf(" --max_steps %" PRId64, l->steps);
    if (l->is_16_bit) printf(" --%s true", l->is_fp16 ? "fp16" : "bf16");
    if (c->zero_stage > 0)
        printf(" \\\n  --fsdp \"%s auto_wrap%s\"", strategies[c->zero_stage],
               c->offload != MDOT_OFFLOAD_NOTHING ? " offload" : "");
    if (c->recompute != MDOT_RECOMPUTE_NOTHING) printf(" --gradient_checkpointing true");
    if (c->compiled != 0) printf(" --torch_compile true");
    puts("");
}

mdot_status plan_emit(const plan_request *r, const plan_answers *answers, mdot_error *err)
{
    if (answers->recommended == NULL)
        return BS_INVALID(err,
                          "%s: --emit has no layout to print, because none fits: use more GPUs, GPUs with more memory, "
                          "--offload, or a smaller precision",
                          r->job_path);
    const launch l = launch_of(r, answers);
    if (r->emit != TORCHRUN && l.length == 0)
        return BS_INVALID(err, "%s: the job has no tokens, and %s trains language models: use --emit torchrun",
                          r->job_path, plan_emit_names[r->emit]);
    if (r->emit == TORCHRUN && l.tensor * l.pipeline * l.context * l.experts > 1)
        return BS_INVALID(err,
                          "%s: the recommended layout has tp=%u, pp=%u, cp=%u and ep=%u, which torchrun alone cannot "
                          "launch: use --emit torchtitan or megatron, or keep --parallel tp=1,pp=1,cp=1,ep=1",
                          r->job_path, l.tensor, l.pipeline, l.context, l.experts);
    if (r->emit == TORCHTITAN)
        print_torchtitan(&l);
    else if (r->emit == MEGATRON)
        print_megatron(&l);
    else
        print_torchrun(&l);
    return MDOT_OK;
}
