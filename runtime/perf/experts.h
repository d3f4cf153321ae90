/* experts.h — the operators of a job that are the experts of a mixture. */
#ifndef RT_EXPERTS_H
#define RT_EXPERTS_H

#include "runtime/job/job_model.h"

typedef struct rt_experts {
    uint8_t *is_expert; /* for each operator */
    /* A degree of expert parallelism must divide `common_count`, a common divisor of the layers' expert counts. 0 means
     * that the job has no experts. */
    uint64_t common_count;
    double exchanged_bytes;  /* fp32 bytes of one sample that a forward pass sends to experts and collects */
    uint32_t exchange_count; /* all-to-alls of one forward pass */
} rt_experts;

/* Returns false if memory runs out. The caller frees out_experts->is_expert in either case. */
bool rt_find_experts(const mdot_job *job, rt_experts *out_experts);

#endif
