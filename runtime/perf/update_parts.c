/* update_parts.c — sums over a job's parameters that optimizers need.
 *
 * A matmul's parameters are `groups` matrices of channels_in rows and channels_out columns. Muon follows Keller
 * Jordan's implementation: five iterations of X = aX + (bA + cA²)X with A = XXᵀ, where X has the shorter side m and the
 * longer side n. One iteration takes 4m²n + 2m³ FLOPs.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <math.h>

enum { ITERATIONS = 5 };

/* A matmul's number of matrices, and their sides. count is 0 if the operator has no matrix. */
typedef struct matrices {
    double count, rows, columns;
} matrices;

static matrices matrices_of(const mdot_job_operator *op)
{
    double rows = (double)op->setting[MDOT_SETTING_CHANNELS_IN],
           columns = (double)op->setting[MDOT_SETTING_CHANNELS_OUT];
    bool is_matmul = rt_uses_tensor_cores(op) && op->setting[MDOT_SETTING_KERNEL_W] == 0 && rows > 1 && columns > 1;
    if (!is_matmul || op->parameters < rows * columns) return (matrices){0};
    double groups = op->setting[MDOT_SETTING_GROUPS] > 1 ? (double)op->setting[MDOT_SETTING_GROUPS] : 1;
    if (groups * rows * columns > op->parameters) groups = 1;
    return (matrices){groups, rows, columns};
}

rt_update_parts rt_find_update_parts(const mdot_job *job, const rt_sharding *sharding)
{
    rt_update_parts out = {0};
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        matrices m = matrices_of(op);
        double elements = m.count * m.rows * m.columns;
        double parameters = rt_dense_parameters(op);
        rt_add_parts(sharding, i, parameters - elements + m.count * (m.rows + m.columns), &out.factored);
        if (m.count > 0 && op->block > 0) {
            double shorter = m.rows < m.columns ? m.rows : m.columns, longer = m.rows + m.columns - shorter;
            double flops = ITERATIONS * m.count * shorter * shorter * (4 * longer + 2 * shorter);
            rt_add_parts(sharding, i, elements, &out.matrices);
            rt_add_parts(sharding, i, flops, &out.orthogonalisation);
            out.largest_matrix = fmax(out.largest_matrix, m.rows * m.columns);
        }
        if (rt_uses_tensor_cores(op)) {
            rt_add_parts(sharding, i, op->frozen_parameters, &out.frozen_matmuls);
            out.largest_frozen = fmax(out.largest_frozen, op->frozen_parameters);
            if (op->frozen_parameters > 0) out.frozen_count++;
        }
        out.largest = fmax(out.largest, parameters);
        if (op->parameters > 0) out.tensors += op->setting[MDOT_SETTING_BIAS] != 0 ? 2 : 1;
    }
    return out;
}
