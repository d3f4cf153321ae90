/* stages.h — the stages of the job reader, in the order of job_read.c. */
#pragma once

#include "frontend/job/fe_job.h"

/* parameter_inputs.c: turns parameters among the graph's inputs into constants without data, and warns. */
void fe_job_find_parameter_inputs(fe_job *job);
/* Does this for one input. If memory runs out, the value becomes no constant. The caller updates the graph's list of
 * inputs. */
void fe_make_parameter(const ir_graph *graph, ir_value *value);

/* strip_dropout.c: removes random masks so that the data bypasses them. Runs before types are inferred. */
void fe_job_strip_dropout(fe_job *job);

/* strip_backward.c: removes gradient and update nodes, and rewrites forward operators found in training graphs only.
 * Parameters among the graph's inputs become constants without data. */
void fe_job_strip_backward(fe_job *job);

/* shapes.c: infers the type of every value and folds constants. Unknown operators and operators whose rules fail become
 * mdot.Opaque, with a warning. Values that depend on parameters alone become constants without data. */
void fe_job_infer_types(fe_job *job);
/* Repeats the last part of fe_job_infer_types, for new nodes. */
void fe_job_fold_constants(fe_job *job);

/* operator_costs.c: sums the FLOPs of products in job->check. Runs once types are known, and before any operator is
 * rewritten. */
void fe_job_count_products(fe_job *job);

/* widen_types.c: makes f16, bf16 and f64 values f32. Runs after types are inferred. */
void fe_job_widen_types(fe_job *job);

/* unfold_batchnorm.c: marks nodes into which an exporter folded a BatchNormalization. Runs before any constant is
 * folded. */
void fe_job_mark_folded_norms(fe_job *job);
/* Inserts the BatchNormalization behind marked nodes again, and warns. Runs once types are known. */
void fe_job_unfold_norms(fe_job *job);

/* canonicalise.c: rewrites equivalent patterns into one canonical form. */
void fe_job_canonicalise(fe_job *job);

/* extract_operators.c: converts the graph's operators into job->operators. */
void fe_job_extract_operators(fe_job *job);
/* Makes job->result from the operators. */
void fe_job_finish(fe_job *job);
