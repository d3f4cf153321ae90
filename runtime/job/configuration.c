/* configuration.c — reads a caller's configuration: converts it to the library's form, checks it, finds its GPU and
 * fills in every default.
 *
 * A GPU is given as a name or as spec values. A name is compared with every known name. A call for many pairs does
 * this once per name pointer.
 */
#include "runtime/job/configuration.h"
#include "runtime/job/gpus.h"

#include <math.h>

enum {
    MAX_BATCH = 1 << 24,
    MAX_PASSES = 1 << 16,
    MAX_ZERO_STAGE = 3
}; /* MAX_BATCH: f32 represents every integer up
                                                                         * to 2^24 */
enum { FIRST_TORCH = 100, FIRST_COMPILED = 200, LAST_TORCH = 9999 };

const bs_struct_version rt_configuration_type = BS_SIZED(mdot_configuration, optimizer);

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* Accepted range of spec values and rates, each in its unit. It extends far beyond real GPUs in both directions, yet
 * times and ratios of such values stay finite. */
#define LEAST_FIGURE 1e-6
#define MOST_FIGURE 1e9

static bool is_figure(double value, bool may_be_zero)
{
    return (value >= LEAST_FIGURE && value <= MOST_FIGURE) || (may_be_zero && value == 0); /* false for NaN */
}

static mdot_status check_choices(const mdot_configuration *c, mdot_error *err)
{
    const struct {
        const char *name;
        unsigned value, last;
    } choices[] = {{"precision", (unsigned)c->precision, MDOT_PRECISION_PYTORCH},
                   {"layout", (unsigned)c->layout, MDOT_LAYOUT_NHWC},
                   {"optimizer", (unsigned)c->optimizer, MDOT_OPTIMIZER_ADAMW},
                   {"attention", (unsigned)c->attention, MDOT_ATTENTION_EAGER},
                   {"recomputation", (unsigned)c->recompute, MDOT_RECOMPUTE_SELECTIVE},
                   {"link", (unsigned)c->link, MDOT_LINK_NVLINK}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].value > choices[i].last)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no %s %d", choices[i].name, (int)choices[i].value);
    return MDOT_OK;
}

static mdot_status check_numbers(const mdot_configuration *c, mdot_error *err)
{
    if (c->batch < 1 || c->batch > MAX_BATCH)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the batch is %lld, not 1 to %d", (long long)c->batch, MAX_BATCH);
    if (c->gpu_count < 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU count is %d", c->gpu_count);
    if (c->compiled > 1) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "compiled is %u, not 0 or 1", c->compiled);
    if (c->accumulate > MAX_PASSES)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%u passes a step are more than %d", c->accumulate, MAX_PASSES);
    if (c->zero_stage > MAX_ZERO_STAGE)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no stage %u of ZeRO", c->zero_stage);
    if (c->reserved != 0)
        return mdot_fail(err, MDOT_INCOMPATIBLE, "a configuration's reserved field is %u, not 0", c->reserved);
    if (c->torch != 0 && (c->torch < FIRST_TORCH || c->torch > LAST_TORCH))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "torch is %u, not 100 * major + minor of a version (2.4 is 204)",
                         c->torch);
    if (c->compiled != 0 && c->torch != 0 && c->torch < FIRST_COMPILED)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "PyTorch %u.%u has no torch.compile, which came with 2.0",
                         c->torch / 100, c->torch % 100);
    bool is_link = is_figure(c->link_gbps, true);
    if (!is_link || !is_figure(c->network_gbps, true))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s_gbps is %g, neither 0 nor %g to %g",
                         is_link ? "network" : "link", is_link ? c->network_gbps : c->link_gbps, LEAST_FIGURE,
                         MOST_FIGURE);
    return check_choices(c, err);
}

/* ---- GPUs ------------------------------------------------------------------------------------------------------- */

static mdot_status find_name(const char *name, rt_gpu_names *names, mdot_gpu *out_gpu, mdot_error *err)
{
    size_t slot = ((uintptr_t)name ^ (uintptr_t)name >> 6) % RT_GPU_SLOTS; /* names of a table lie a few bytes apart */
    if (name == NULL || names->slots[slot].name != name) {
        const mdot_gpu *gpu;
        mdot_status status = rt_gpu_find(name, &gpu, err);
        if (status != MDOT_OK) return status;
        names->slots[slot].name = name;
        names->slots[slot].gpu = gpu;
    }
    *out_gpu = *names->slots[slot].gpu;
    return MDOT_OK;
}

#define PCIE_4_GBPS 31.5

static mdot_status read_figures(const mdot_gpu *figures, mdot_gpu *out_gpu, mdot_error *err)
{
    mdot_status status = bs_read_struct(&rt_gpu_type, figures, out_gpu, err);
    if (status == MDOT_OK) status = rt_gpu_check_name(out_gpu->name, err);
    if (status != MDOT_OK) return status;
    if (out_gpu->pcie_gbps == 0) out_gpu->pcie_gbps = PCIE_4_GBPS;
#define CHECK(field)                                                                                                   \
    if (!is_figure(out_gpu->field, RT_GPU_##field == RT_GPU_nvlink_gbps || RT_GPU_##field == RT_GPU_watts))            \
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU's " #field " is %g, not %g to %g", out_gpu->field,       \
                         LEAST_FIGURE, MOST_FIGURE);
    RT_GPU_COLUMN_MAP(CHECK)
#undef CHECK
    return MDOT_OK;
}

/* ---- How GPUs work together ------------------------------------------------------------------------------------- */

/* Fraction of the bandwidth that collectives reach on a link, and on 200 Gbit/s InfiniBand per GPU. Sources: NCCL's
 * bus bandwidth in NVIDIA's nccl-tests (doc/PERFORMANCE.md) and their published runs. */
#define NVLINK_SHARE 0.8
#define PCIE_SHARE 0.4
#define NETWORK_GBPS 20.0

static mdot_status complete_link(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    if (c->network_gbps == 0) c->network_gbps = NETWORK_GBPS;
    if (c->link_gbps > 0) {
        if (c->link == MDOT_LINK_DEFAULT) return MDOT_OK;
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration has both link and link_gbps");
    }
    bool has_nvlink = s->gpu.nvlink_gbps > 0;
    if (c->link == MDOT_LINK_NVLINK && !has_nvlink)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "%s comes without NVLink; a bridge is given by its rate, as link_gbps",
                         s->gpu.name != NULL ? s->gpu.name : "the GPU");
    bool by_nvlink = has_nvlink && c->link != MDOT_LINK_PCIE;
    c->link_gbps = by_nvlink ? NVLINK_SHARE * s->gpu.nvlink_gbps : PCIE_SHARE * s->gpu.pcie_gbps;
    return MDOT_OK;
}

static uint32_t at_least_one(uint32_t number)
{
    return number > 0 ? number : 1;
}

static mdot_status complete_degrees(mdot_configuration *c, mdot_error *err)
{
    bool counts_workers = c->data_parallel == 0 && c->gpu_count > 0;
    c->tensor_parallel = at_least_one(c->tensor_parallel);
    c->pipeline_parallel = at_least_one(c->pipeline_parallel);
    c->expert_parallel = at_least_one(c->expert_parallel);
    double others = (double)c->tensor_parallel * c->pipeline_parallel * c->expert_parallel;
    if (counts_workers && fmod(c->gpu_count, others) == 0) c->data_parallel = (uint32_t)(c->gpu_count / others);
    c->data_parallel = at_least_one(c->data_parallel);
    double product = c->data_parallel * others;
    if (c->gpu_count == 0 && product <= INT32_MAX) c->gpu_count = (int)product;
    if (product != c->gpu_count)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "data_parallel %u, tensor_parallel %u, pipeline_parallel %u and expert_parallel %u make %.0f "
                         "GPUs, not %d",
                         c->data_parallel, c->tensor_parallel, c->pipeline_parallel, c->expert_parallel, product,
                         c->gpu_count);
    return MDOT_OK;
}

static mdot_status complete_micro_batches(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    if (c->micro_batches > 1 && c->pipeline_parallel == 1)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "micro_batches are a pipeline's, and there is none; accumulate adds passes up");
    if (c->micro_batches == 0) c->micro_batches = c->pipeline_parallel;
    if (c->batch % c->micro_batches != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a batch of %lld does not divide into %u micro-batches",
                         (long long)c->batch, c->micro_batches);
    s->micro_batch = c->batch / c->micro_batches;
    return MDOT_OK;
}

mdot_status rt_configuration_complete(rt_configuration *s, mdot_error *err)
{
    mdot_configuration *c = &s->c;
    c->accumulate = at_least_one(c->accumulate);
    s->plain_workers = c->link == MDOT_LINK_DEFAULT && c->link_gbps == 0 && c->network_gbps == 0 &&
                       c->node_count <= 1 && c->zero_stage == 0 && c->accumulate == 1;
    c->node_count = at_least_one(c->node_count);
    mdot_status status = complete_degrees(c, err);
    if (status == MDOT_OK) status = complete_micro_batches(s, err);
    if (status == MDOT_OK) status = complete_link(s, err);
    if (status != MDOT_OK) return status;
    s->plain_workers =
        s->plain_workers && c->tensor_parallel == 1 && c->pipeline_parallel == 1 && c->expert_parallel == 1;
    if ((uint32_t)c->gpu_count % c->node_count != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%d GPUs do not spread evenly over %u nodes", c->gpu_count,
                         c->node_count);
    return MDOT_OK;
}

mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  rt_configuration *out_configuration, mdot_error *err)
{
    rt_configuration s = {0};
    mdot_status status = bs_read_element(&rt_configuration_type, first, i, &s.c, err);
    if (status == MDOT_OK) status = check_numbers(&s.c, err);
    if (status != MDOT_OK) return status;
    if (s.c.gpu_spec == NULL) {
        status = find_name(s.c.gpu, names, &s.gpu, err);
    } else if (s.c.gpu == NULL) {
        status = read_figures(s.c.gpu_spec, &s.gpu, err);
    } else {
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "a configuration has both gpu and gpu_spec");
    }
    if (status == MDOT_OK) status = rt_configuration_complete(&s, err);
    if (status == MDOT_OK) *out_configuration = s;
    return status;
}
