/* job_identity.h — recognises a job by its operators, and compares jobs by the operators that take their work. */
#ifndef RT_JOB_IDENTITY_H
#define RT_JOB_IDENTITY_H

#include "runtime/job/job_model.h"

/* Shares are whole numbers of ten-thousandths, so that text holds them exactly. */
enum { RT_WORK_CLASSES = 32, RT_SHARE_UNITS = 10000 };

typedef struct rt_job_identity {
    uint64_t digest;              /* of types, attributes, parameters and dependencies; never 0 */
    float share[RT_WORK_CLASSES]; /* fraction of the job's work by class of operator; adds up to 1 */
} rt_job_identity;

/* `cost` has a value for each operator (op_cost.h). */
void rt_identify_job(const mdot_job *job, const double *cost, rt_job_identity *out_identity);

/* Half of the summed differences of the shares: 0 for jobs of equal shares, 1 for jobs that share no class. */
double rt_job_distance(const float a[RT_WORK_CLASSES], const float b[RT_WORK_CLASSES]);

#endif
