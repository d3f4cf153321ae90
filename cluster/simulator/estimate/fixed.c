/* fixed.c — estimates that are fixed before the simulation: the truth, and the truth times a factor. */
#include "simulator/estimate/estimators.h"

#include <stdlib.h>

static double one(void *self, const sc_workload *workload, uint32_t job, double duration_s) { return 1; }

sc_estimator sc_estimator_oracle(void) { return (sc_estimator){.factor = one}; }

static double pick(void *self, const sc_workload *workload, uint32_t job, double duration_s)
{
    return ((const double *)self)[job];
}

mdot_status sc_estimator_make_fixed(double *factors, sc_estimator *out_estimator, mdot_error *err)
{
    *out_estimator = (sc_estimator){.factor = pick, .destroy = free, .self = factors};
    return MDOT_OK;
}

void sc_estimator_destroy(sc_estimator *estimator)
{
    if (estimator->destroy != NULL) estimator->destroy(estimator->self);
    *estimator = (sc_estimator){0};
}
