/* configuration.c — reads a caller's configuration: converts it to the library's form, checks it, finds its GPU and
 * fills in every default.
 *
 * A GPU is given as a name or as spec values. A name is compared with every known name. A call for many pairs does
 * this once per name pointer.
 */
#include "runtime/job/configuration.h"
#include "base/text.h"
#include "runtime/job/configuration_table.h"
#include "runtime/job/gpus.h"

#include <assert.h>
#include <math.h>

enum { FIRST_COMPILED = 200 }; /* PyTorch 2.0 came with torch.compile */

const bs_struct_version rt_configuration_type = BS_SIZED(mdot_configuration, optimizer);

/* Accepted range of spec values, each in its unit. It extends far beyond real GPUs in both directions, yet
 * times and ratios of such values stay finite. */
#define MIN_SPEC_VALUE 1e-6
#define MAX_SPEC_VALUE 1e9

/* The choices of configuration.def have the values of the public enums. */
enum {
#define CHOICES(field) BEFORE_##field = -1,
#define CHOICE(kind, id, name) VALUE_##kind##_##id,
#include "runtime/job/configuration.def"
};
#define CHOICE(kind, id, name)                                                                                         \
    static_assert((int)VALUE_##kind##_##id == (int)MDOT_##kind##_##id, "the order of the public enum");
#include "runtime/job/configuration.def"

static mdot_status refuse_value(const rt_option *option, double value, mdot_error *err)
{
    rt_option_label label = rt_option_label_of(option);
    char names[192];
    bs_join list;
    if (option->kind == RT_KIND_REAL)
        return BS_INVALID(err, "%s is %g; accepted: 0, or %g to %g", label.text, value, option->least, option->most);
    if (option->kind == RT_KIND_VERSION)
        return BS_INVALID(err, "%s is %.0f; a version is 100 * major + minor (2.4 is 204)", label.text, value);
    bs_join_begin(&list, names, sizeof names);
    for (size_t i = 0; option->choices != NULL && option->choices[i] != NULL; i++)
        bs_join_add(&list, "%s", option->choices[i]);
    double minimum = option->accepts_zero ? 0 : option->least;
    return BS_INVALID(err, "%s is %.0f; accepted: %.0f to %.0f%s%s", label.text, value, minimum, option->most,
                      option->choices != NULL ? ": " : "", names);
}

/* False for NaN. */
static bool is_in_range(double value, double minimum, double maximum, bool accepts_zero)
{
    return (value >= minimum && value <= maximum) || (accepts_zero && value == 0);
}

/* Checks the range of every option. The table becomes comparisons with constants, because a sweep runs them for each
 * configuration. */
static mdot_status check_ranges(const mdot_configuration *c, mdot_error *err)
{
#define CHECK_WHOLE(field, least, most) CHECK_NUMBER(field, least, most, false)
#define CHECK_CHOICE(field, least, most) CHECK_NUMBER(field, least, most, false)
#define CHECK_FLAG(field, least, most) CHECK_NUMBER(field, least, most, false)
#define CHECK_COUNT(field, least, most) CHECK_NUMBER(field, least, most, true)
#define CHECK_REAL(field, least, most) CHECK_NUMBER(field, least, most, true)
#define CHECK_VERSION(field, least, most) CHECK_NUMBER(field, least, most, true)
#define CHECK_GPU(field, least, most) /* found by its name, or checked in read_gpu_spec */
#define CHECK_NUMBER(field, least, most, accepts_zero)                                                                 \
    if (!is_in_range((double)c->field, least, most, accepts_zero))                                                     \
        return refuse_value(&rt_options[RT_OPTION_##field], (double)c->field, err);
#define OPTION(field, kind, least, most, ...) CHECK_##kind(field, least, most)
#include "runtime/job/configuration.def"
    return MDOT_OK;
}

/* Replaces an optimizer whose name includes its kernels. */
static mdot_status split_optimizer(mdot_configuration *c, mdot_error *err)
{
    bool is_adam = c->optimizer == MDOT_OPTIMIZER_ADAM_FUSED;
    if (!is_adam && c->optimizer != MDOT_OPTIMIZER_ADAMW_FUSED) return MDOT_OK;
    if (c->optimizer_kernels != MDOT_OPTIMIZER_KERNELS_DEFAULT && c->optimizer_kernels != MDOT_OPTIMIZER_KERNELS_FUSED)
        return BS_INVALID(err,
                          "--optimizer is %s, but --optimizer-kernels is %s: set --optimizer to %s, or leave "
                          "--optimizer-kernels at its default",
                          rt_optimizer_names[c->optimizer], rt_optimizer_kernels_names[c->optimizer_kernels],
                          is_adam ? "adam" : "adamw");
    c->optimizer = is_adam ? MDOT_OPTIMIZER_ADAM : MDOT_OPTIMIZER_ADAMW;
    c->optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FUSED;
    return MDOT_OK;
}

/* Checks training options that need or exclude each other. */
static mdot_status check_training(const mdot_configuration *c, mdot_error *err)
{
    bool half_weights = c->precision == MDOT_PRECISION_BF16 || rt_is_mixed(c->precision);
    if (c->gradient_type == MDOT_NUMBER_HALF && !half_weights)
        return BS_INVALID(err,
                          "--gradient-type is half, but gradients have the type of the weights, which is fp32: set "
                          "--precision to bf16, mixed-bf16 or mixed-fp16");
    if (c->step_in_backward != 0 && (c->accumulate > 1 || c->micro_batches > 1 || c->pipeline_parallel > 1))
        return BS_INVALID(
            err, "--step-in-backward updates a parameter after one pass: leave --accumulate, --parallel micro and "
                 "--parallel pp at 1");
    if (c->offload == MDOT_OFFLOAD_PARAMETERS && c->zero_stage != 3)
        return BS_INVALID(
            err, "--offload is parameters, which needs --parallel zero=3, because only that stage gathers weights "
                 "before their use");
    bool has_pages = c->optimizer == MDOT_OPTIMIZER_ADAM || c->optimizer == MDOT_OPTIMIZER_ADAMW ||
                     c->optimizer == MDOT_OPTIMIZER_ADAM8BIT || c->optimizer == MDOT_OPTIMIZER_ADAMW8BIT ||
                     c->optimizer == MDOT_OPTIMIZER_LION;
    if (c->offload == MDOT_OFFLOAD_PAGES && !has_pages)
        return BS_INVALID(
            err, "--offload is pages, which exist for the optimizers adam, adamw, adam8bit, adamw8bit and lion: "
                 "set --optimizer to one of them");
    if (c->offload != MDOT_OFFLOAD_NOTHING && c->offload != MDOT_OFFLOAD_PAGES && c->step_in_backward != 0)
        return BS_INVALID(
            err,
            "--step-in-backward updates on the GPU, and --offload in host memory: set one of them, or --offload to "
            "pages");
    if (c->keep_gathered != 0 && c->zero_stage != 3)
        return BS_INVALID(err,
                          "--keep-gathered needs --parallel zero=3, because other stages keep all weights on each GPU");
    if (c->whole_gradients != 0 && (c->zero_stage != 3 || c->accumulate < 2))
        return BS_INVALID(
            err, "--whole-gradients needs --parallel zero=3 and --accumulate of at least 2, because otherwise no pass "
                 "sums its gradients early");
    if (c->whole_gradients != 0 && (c->pipeline_parallel > 1 || c->offload == MDOT_OFFLOAD_PARAMETERS))
        return BS_INVALID(
            err,
            "--whole-gradients works neither with pipelines, which keep whole gradients anyway, nor with --offload of "
            "parameters, which moves gradients to the host");
    return MDOT_OK;
}

/* Returns the first option with such a fact that differs from its default; NULL if there is none. */
static const rt_option *find_set_option(const mdot_configuration *c, int facts)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if ((rt_options[i].facts & facts) != 0 && rt_option_is_set(c, &rt_options[i])) return &rt_options[i];
    return NULL;
}

/* Inference has no backward pass and no update. Its estimate covers one GPU. */
static mdot_status check_inference(const mdot_configuration *c, mdot_error *err)
{
    if (c->mode != MDOT_MODE_INFERENCE) return MDOT_OK;
    const rt_option *option = find_set_option(c, RT_TRAINING_ONLY);
    if (option != NULL)
        return BS_INVALID(err,
                          "--mode is inference, which has neither gradients nor an optimizer: leave %s at its default",
                          rt_option_label_of(option).text);
    if (find_set_option(c, RT_SEVERAL_GPUS) == NULL) return MDOT_OK;
    return BS_INVALID(err, "--mode is inference, which is estimated for one GPU: leave --gpus at 1");
}

static mdot_status check_numbers(mdot_configuration *c, mdot_error *err)
{
    BS_TRY(check_ranges(c, err));
    if (c->compiled != 0 && c->torch != 0 && c->torch < FIRST_COMPILED)
        return BS_INVALID(
            err, "--compile needs PyTorch 2.0 or later, which introduced torch.compile; --torch is " RT_VERSION_FORMAT,
            RT_VERSION_PARTS(c->torch));
    if ((c->cpu_rate > 0) != (c->cpus > 0))
        return BS_INVALID(err, c->cpus > 0 ? "--cpus needs --cpu-rate, the samples per second from one CPU"
                                           : "--cpu-rate needs --cpus, the CPUs of all data loaders together");
    mdot_status status = check_training(c, err);
    if (status == MDOT_OK) status = check_inference(c, err);
    return status == MDOT_OK ? split_optimizer(c, err) : status;
}

static mdot_status find_name(const char *name, rt_gpu_names *names, mdot_gpu *out_gpu, mdot_error *err)
{
    uintptr_t hash = (uintptr_t)name ^ (uintptr_t)name >> 6; /* names of a table lie a few bytes apart */
    size_t slot = hash % RT_GPU_SLOTS;
    if (name == NULL || names->slots[slot].name != name) {
        const mdot_gpu *gpu;
        BS_TRY(rt_gpu_find(name, &gpu, err));
        names->slots[slot].name = name;
        names->slots[slot].gpu = gpu;
    }
    *out_gpu = *names->slots[slot].gpu;
    return MDOT_OK;
}

#define PCIE_4_GBPS 31.5

static mdot_status read_gpu_spec(const mdot_gpu *spec, mdot_gpu *out_gpu, mdot_error *err)
{
    BS_TRY(bs_read_struct(&rt_gpu_type, spec, out_gpu, err));
    BS_TRY(rt_gpu_check_name(out_gpu->name, err));
    if (out_gpu->pcie_gbps == 0) out_gpu->pcie_gbps = PCIE_4_GBPS;
#define COLUMN(field, key, may_be_zero, ...)                                                                           \
    if (!is_in_range(out_gpu->field, MIN_SPEC_VALUE, MAX_SPEC_VALUE, may_be_zero))                                     \
        return BS_INVALID(err, "--gpu-spec " key " is %g; accepted: %g to %g", out_gpu->field, MIN_SPEC_VALUE,         \
                          MAX_SPEC_VALUE);
#include "runtime/job/gpus.def"
    return MDOT_OK;
}

#define LEAST_POWER_PART 0.2 /* drivers refuse limits below about a third, and no measurement lies below */

static mdot_status check_power(const rt_configuration *s, mdot_error *err)
{
    double limit = s->c.power_limit, watts = s->gpu.watts;
    if (limit == 0 || (limit <= watts && limit >= LEAST_POWER_PART * watts)) return MDOT_OK;
    if (watts == 0)
        return BS_INVALID(err,
                          "--power-limit is %g W, but the limit of %s itself is unknown: set --gpu-spec power, too",
                          limit, s->gpu.name != NULL ? s->gpu.name : "the GPU");
    return BS_INVALID(err,
                      "--power-limit is %g W; accepted for %s: %g to %g W. For a board with another limit, set "
                      "--gpu-spec power",
                      limit, s->gpu.name != NULL ? s->gpu.name : "the GPU", LEAST_POWER_PART * watts, watts);
}

static mdot_status check_fp8(const rt_configuration *s, mdot_error *err)
{
    const char *gpu = s->gpu.name != NULL ? s->gpu.name : "the GPU", *precision = rt_precision_names[s->c.precision];
    if (!rt_is_fp8(s->c.precision)) return MDOT_OK;
    if (s->gpu.fp8_tflops == 0)
        return BS_INVALID(err,
                          "--precision is %s, but %s lacks FP8, which came with Ada, Hopper and CDNA 3: use mixed-bf16",
                          precision, gpu);
    if (s->c.precision == MDOT_PRECISION_FP8_BLOCKWISE && s->gpu.compute_capability < RT_HOPPER_CAPABILITY)
        return BS_INVALID(
            err, "--precision is fp8-blockwise, whose kernels came with Hopper, but the GPU is %s: use fp8", gpu);
    if (s->c.precision == MDOT_PRECISION_MXFP8 && s->gpu.compute_capability < RT_BLACKWELL_CAPABILITY)
        return BS_INVALID(
            err, "--precision is mxfp8, but %s lacks MX formats, which came with Blackwell: use fp8 or fp8-rowwise",
            gpu);
    return MDOT_OK;
}

/* Fraction of the bandwidth that collectives reach on a link, and on InfiniBand per GPU: 200 Gbit/s in a DGX A100, 400
 * in a DGX H100 and later ones. Sources: NCCL's bus bandwidth in NVIDIA's nccl-tests (doc/PERFORMANCE.md) and their
 * published runs. */
#define NVLINK_EFFICIENCY 0.8
#define PCIE_EFFICIENCY 0.4

static mdot_status complete_link(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    if (c->network_gbps == 0) c->network_gbps = rt_usual_network_gbps(&s->gpu);
    if (c->link_gbps > 0) {
        if (c->link == MDOT_LINK_DEFAULT) return MDOT_OK;
        return BS_INVALID(err, "--link is both a kind and a rate: set one of them");
    }
    bool has_nvlink = s->gpu.nvlink_gbps > 0;
    if (c->link == MDOT_LINK_NVLINK && !has_nvlink)
        return BS_INVALID(
            err,
            "--link is nvlink, but %s lacks NVLink; for an NVLink bridge, set --link to its rate, for example "
            "--link 50GB/s",
            s->gpu.name != NULL ? s->gpu.name : "the GPU");
    bool by_nvlink = has_nvlink && c->link != MDOT_LINK_PCIE;
    c->link_gbps = by_nvlink ? NVLINK_EFFICIENCY * s->gpu.nvlink_gbps : PCIE_EFFICIENCY * s->gpu.pcie_gbps;
    return MDOT_OK;
}

static uint32_t at_least_one(uint32_t number) { return number > 0 ? number : 1; }

static mdot_status refuse_product(const mdot_configuration *c, double product, mdot_error *err)
{
    char degrees[160];
    bs_join list;
    bs_join_begin(&list, degrees, sizeof degrees);
    const struct {
        int option;
        uint32_t degree;
    } factors[] = {{RT_OPTION_data_parallel, c->data_parallel},
                   {RT_OPTION_tensor_parallel, c->tensor_parallel},
                   {RT_OPTION_pipeline_parallel, c->pipeline_parallel},
                   {RT_OPTION_expert_parallel, c->expert_parallel},
                   {RT_OPTION_context_parallel, c->context_parallel}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (i == 0 || factors[i].degree > 1)
            bs_join_add(&list, "%s=%u", rt_option_label_of(&rt_options[factors[i].option]).text, factors[i].degree);
    return BS_INVALID(
        err, "%s multiply to %.0f GPUs, but --gpus is %d: set --gpus to a multiple of the degrees, or leave it out",
        degrees, product, c->gpu_count);
}

static mdot_status complete_degrees(mdot_configuration *c, mdot_error *err)
{
    bool counts_workers = c->data_parallel == 0 && c->gpu_count > 0;
    c->tensor_parallel = at_least_one(c->tensor_parallel);
    c->pipeline_parallel = at_least_one(c->pipeline_parallel);
    c->expert_parallel = at_least_one(c->expert_parallel);
    c->context_parallel = at_least_one(c->context_parallel);
    double others = (double)c->tensor_parallel * c->pipeline_parallel * c->expert_parallel * c->context_parallel;
    double without_experts = others / c->expert_parallel, workers = c->gpu_count / without_experts;
    if (counts_workers && fmod(c->gpu_count, others) == 0)
        c->data_parallel = (uint32_t)(c->gpu_count / others);
    else if (counts_workers && fmod(workers * c->context_parallel, c->expert_parallel) == 0)
        c->data_parallel = (uint32_t)workers;
    c->data_parallel = at_least_one(c->data_parallel);
    bool shares = (double)c->data_parallel * without_experts == c->gpu_count;
    if (shares && (c->data_parallel * c->context_parallel) % c->expert_parallel == 0) return MDOT_OK;
    double product = c->data_parallel * without_experts * c->expert_parallel;
    if (c->gpu_count == 0 && product <= INT32_MAX) c->gpu_count = (int)product;
    return product == c->gpu_count ? MDOT_OK : refuse_product(c, product, err);
}

static mdot_status check_schedule(mdot_configuration *c, mdot_error *err)
{
    c->virtual_stages = at_least_one(c->virtual_stages);
    bool interleaves = c->virtual_stages > 1, fills_gaps = c->schedule == MDOT_SCHEDULE_ZERO_BUBBLE;
    if (c->sequence_parallel != 0 && c->tensor_parallel == 1)
        return BS_INVALID(err, "--parallel sp needs --parallel tp of 2 or more; to divide sequences without it, use "
                               "--parallel cp");
    if ((interleaves || fills_gaps) && c->pipeline_parallel == 1)
        return BS_INVALID(err, "%s needs --parallel pp of 2 or more",
                          interleaves ? "--parallel vpp" : "--schedule zero-bubble");
    if (interleaves && fills_gaps)
        return BS_INVALID(
            err, "--schedule zero-bubble (ZB-H1) has one part of the pipeline on each GPU: leave --parallel vpp "
                 "at 1, or use --schedule 1f1b");
    if ((c->first_stage_blocks > 0 || c->last_stage_blocks > 0) && c->pipeline_parallel == 1)
        return BS_INVALID(err, "--parallel first and --parallel last need --parallel pp of 2 or more");
    if (interleaves && c->framework == MDOT_FRAMEWORK_MEGATRON && c->micro_batches < c->pipeline_parallel)
        return BS_INVALID(err,
                          "--parallel micro is %u; Megatron needs at least --parallel pp, %u, beside --parallel vpp",
                          c->micro_batches, c->pipeline_parallel);
    return MDOT_OK;
}

static mdot_status check_servers(const mdot_configuration *c, mdot_error *err)
{
    if (c->servers == 0 && c->sync == MDOT_SYNC_BSP) return MDOT_OK;
    if (c->servers == 0) return BS_INVALID(err, "--sync asp needs --parallel ps, because all other updates wait");
    bool is_alone = c->gpu_count > 1 && c->data_parallel == (uint32_t)c->gpu_count && c->expert_parallel == 1 &&
                    c->zero_stage == 0 && c->offload == MDOT_OFFLOAD_NOTHING && c->step_in_backward == 0;
    if (is_alone) return MDOT_OK;
    return BS_INVALID(err,
                      "--parallel ps needs at least two workers (--gpus), which have the whole network each: leave "
                      "tp, pp, ep, cp, zero, --offload and --step-in-backward out");
}

static mdot_status complete_micro_batches(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    if (c->micro_batches > 1 && c->pipeline_parallel == 1)
        return BS_INVALID(err, "--parallel micro needs --parallel pp of 2 or more; to add up the gradients of several "
                               "passes, use --accumulate");
    if (c->micro_batches == 0) c->micro_batches = c->pipeline_parallel;
    if (c->batch % c->micro_batches != 0)
        return BS_INVALID(err, "--batch is %lld; it must be a multiple of --parallel micro, %u", (long long)c->batch,
                          c->micro_batches);
    s->micro_batch = c->batch / c->micro_batches;
    return check_schedule(c, err);
}

mdot_status rt_configuration_complete(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    c->accumulate = at_least_one(c->accumulate);
    s->plain_workers = c->link == MDOT_LINK_DEFAULT && c->link_gbps == 0 && c->network_gbps == 0 &&
                       c->node_count <= 1 && c->zero_stage == 0 && c->accumulate == 1 && c->servers == 0;
    c->node_count = at_least_one(c->node_count);
    BS_TRY(complete_degrees(c, err));
    BS_TRY(check_servers(c, err));
    BS_TRY(complete_micro_batches(s, err));
    BS_TRY(complete_link(s, err));
    BS_TRY(check_fp8(s, err));
    BS_TRY(check_power(s, err));
    s->plain_workers = s->plain_workers && c->tensor_parallel == 1 && c->pipeline_parallel == 1 &&
                       c->expert_parallel == 1 && c->context_parallel == 1;
    if ((uint32_t)c->gpu_count % c->node_count != 0)
        return BS_INVALID(err, "--gpus is %d; it must be a multiple of --nodes, %u", c->gpu_count, c->node_count);
    return MDOT_OK;
}

mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  rt_configuration *out_configuration, mdot_error *err)
{
    rt_configuration s = {0};
    BS_TRY(bs_read_element(&rt_configuration_type, first, i, &s.c, err));
    BS_TRY(check_numbers(&s.c, err));
    if (s.c.gpu_spec != NULL && s.c.gpu != NULL)
        return BS_INVALID(err, "--gpu and --gpu-spec are both set: set one of them");
    BS_TRY(s.c.gpu_spec == NULL ? find_name(s.c.gpu, names, &s.gpu, err) : read_gpu_spec(s.c.gpu_spec, &s.gpu, err));
    BS_TRY(rt_configuration_complete(&s, err));
    *out_configuration = s;
    return MDOT_OK;
}
