/* update_parts.h — sums over a job's parameters that optimizers need. Tables with sparse gradients are excluded,
 * because their update covers the picked rows only. */
#ifndef RT_UPDATE_PARTS_H
#define RT_UPDATE_PARTS_H

#include "runtime/perf/sharding.h"

typedef struct rt_update_parts {
    rt_parts factored;          /* numbers that Adafactor's second moments have: rows and columns of each matrix, and
                                 * all elements of other parameters */
    rt_parts matrices;          /* parameters of the matrices in blocks, which Muon orthogonalises */
    rt_parts orthogonalisation; /* FLOPs of Muon's five Newton-Schulz iterations */
    rt_parts frozen_matmuls;    /* frozen parameters of operators that autocast computes in half precision */
    double largest;             /* trained parameters of the largest operator, which is one tensor but for its bias */
    double largest_matrix;      /* the same of the largest of `matrices` */
    double largest_frozen;      /* the same of the largest of `frozen_matmuls` */
    double tensors;             /* trained tensors of the job: a weight of each operator, and its bias */
} rt_update_parts;

rt_update_parts rt_find_update_parts(const mdot_job *job, const rt_sharding *sharding);

#endif
