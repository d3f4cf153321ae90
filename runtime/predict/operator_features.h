/* operator_features.h — a job as the rows that a predictor reads. */
#ifndef RT_OPERATOR_FEATURES_H
#define RT_OPERATOR_FEATURES_H

#include "runtime/job/job_model.h"
#include "runtime/predict/predictor_tensors.h"

/* Fills the tensors that have rows with the work of one GPU. */
void rt_write_operator_features(const mdot_job *job, const rt_shard *shard, rt_job_tensors *tensors);
/* The row of each operator in tensors filled by rt_write_operator_features. */
void rt_find_feature_rows(const mdot_job *job, const rt_shard *shard, const rt_job_tensors *tensors, uint32_t *out_row);

#endif
