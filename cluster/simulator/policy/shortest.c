/* shortest.c — the job with the least key goes first, with preemption.
 *
 *   srtf   shortest remaining time.
 *   srsf   shortest remaining service, time × GPUs: Tiresias' policy for known durations (Gu et al., NSDI 2019), and
 *          that of the survey's figure 4. Tiresias' placement by skew is left out; it changes no order.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

const sc_policy sc_policy_srtf = {
    .name = "srtf",
    .summary = "shortest remaining time first, preemptive",
    .key = sc_view_left_s,
    .create = sc_sorted_jobs_create,
    .decide = sc_sorted_jobs_decide,
};

const sc_policy sc_policy_srsf = {
    .name = "srsf",
    .summary = "shortest remaining service (time x GPUs) first, preemptive (Tiresias, durations known)",
    .key = sc_view_left_gpu_s,
    .create = sc_sorted_jobs_create,
    .decide = sc_sorted_jobs_decide,
};
