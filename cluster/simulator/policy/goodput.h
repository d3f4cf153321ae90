/* goodput.h — the speed that a policy predicts for a job by GPUs and batch size: Pollux' goodput, which is the product
 * of throughput and statistical efficiency.
 */
#ifndef SC_GOODPUT_H
#define SC_GOODPUT_H

#include "simulator/core/policy.h"

/* Most GPUs of a node of the type. */
int sc_goodput_node_width(const sc_cluster *cluster, unsigned type);

/* Returns the predicted work per second on `gpus` GPUs of a type, on as few of its nodes as possible; 0: the job does
 * not run there. If `adapts`, and the job has a scaling and no batch size of its own, the batch size is the best one by
 * the model of step times and the present gradient noise. *out_batch is that batch size, or 0: the job's own. */
double sc_goodput(const sc_view *view, uint32_t job, unsigned type, int gpus, bool adapts, double *out_batch);

/* Returns the predicted seconds that the job still needs on so many GPUs, at its own batch size. */
double sc_goodput_left_s(const sc_view *view, uint32_t job, unsigned type, int gpus);

/* Returns the next wider number of GPUs than `gpus` that the job's bounds allow and on which it is known to run, at
 * most `most`; 0: none. */
int sc_goodput_next_width(const sc_view *view, uint32_t job, unsigned type, int gpus, int most);

#endif
