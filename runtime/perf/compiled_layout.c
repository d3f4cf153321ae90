/* compiled_layout.c — the layout in which torch.compile runs a job's convolutions. From PyTorch 2.1 on, the compiler
 * for NVIDIA GPUs (Inductor) turns a network's convolutions to channels last by these rules (PyTorch 2.15,
 * torch/_inductor/graph.py, decide_layout_opt):
 *
 *   training    unless a convolution has groups of several channels, or a window and at most half as many filters as
 *               channels, or all convolutions are small
 *   inference   if its benchmarks predict a gain: convolution FLOPs are weighted by kind
 *
 * Here, a network keeps its layout if most FLOPs are outside of convolutions. The compiler decides by the number of
 * operators, which the job lacks, and few operators in such a network have a layout. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <string.h>

enum { SMALL = 64 }; /* channels and filters */

/* Time in channels last over that in channels first, by the compiler's benchmarks. */
#define GROUPED_TIME 1.358
#define SMALL_TIME 0.783
#define NARROWING_TIME 0.725
#define OTHER_TIME 0.823

typedef enum kind { KIND_GROUPED, KIND_SMALL, KIND_NARROWING, KIND_OTHER, KIND_COUNT } kind;

/* Weight sides as PyTorch stores them; a transposed convolution swaps the two. */
static void find_sides(const mdot_job_operator *op, int64_t *out_first, int64_t *out_second)
{
    int64_t channels_in = op->setting[MDOT_SETTING_CHANNELS_IN], channels_out = op->setting[MDOT_SETTING_CHANNELS_OUT];
    int64_t groups = op->setting[MDOT_SETTING_GROUPS] > 1 ? op->setting[MDOT_SETTING_GROUPS] : 1;
    bool is_transposed = strcmp(op->type, "ConvTranspose") == 0;
    *out_first = is_transposed ? channels_in : channels_out;
    *out_second = (is_transposed ? channels_out : channels_in) / groups;
}

/* The rules overlap. Their order is the compiler's when it weights FLOPs. */
static void find_kinds(const mdot_job_operator *op, bool out_is[KIND_COUNT])
{
    int64_t first, second;
    find_sides(op, &first, &second);
    out_is[KIND_GROUPED] = op->setting[MDOT_SETTING_GROUPS] > 1 && second > 1;
    out_is[KIND_SMALL] = first <= SMALL && second <= SMALL;
    out_is[KIND_NARROWING] = 2 * first <= second && op->setting[MDOT_SETTING_KERNEL_H] > 1;
    out_is[KIND_OTHER] = true;
}

bool rt_compiles_in_nhwc(const mdot_job *job, mdot_mode mode)
{
    static const double time[KIND_COUNT] = {GROUPED_TIME, SMALL_TIME, NARROWING_TIME, OTHER_TIME};
    double all_flops = 0, flops_of_convolutions = 0, weighted_flops = 0;
    bool is_refused = false, are_small = true;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        if (!rt_uses_tensor_cores(op)) continue;
        double flops = op->per_sample[MDOT_PHASE_FORWARD].flops;
        all_flops += flops;
        if (op->setting[MDOT_SETTING_KERNEL_H] == 0) continue; /* a matmul, or a window of one dimension */
        bool found[KIND_COUNT];
        find_kinds(op, found);
        kind found_kind = KIND_GROUPED;
        while (!found[found_kind]) found_kind++;
        flops_of_convolutions += flops;
        weighted_flops += flops * time[found_kind];
        is_refused = is_refused || found[KIND_GROUPED] || found[KIND_NARROWING];
        are_small = are_small && found[KIND_SMALL];
    }
    if (!(flops_of_convolutions > all_flops / 2)) return false;
    return mode == MDOT_MODE_INFERENCE ? weighted_flops <= flops_of_convolutions : !is_refused && !are_small;
}
