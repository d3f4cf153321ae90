/* predict_extension.h — the contract of runtime/job: jobs, and predictions of them (mdot_predict.h).
 *
 * Of the other rooms it uses core.h alone, and nothing of it is used but this. Its own files share job_model.h, a job
 * in memory, and predict.h.
 */
#ifndef RT_PREDICT_EXTENSION_H
#define RT_PREDICT_EXTENSION_H

#include "runtime/core/core.h"

/* The tensors that calls of an artefact's entry "predict" read and write; NULL for one that predicts no jobs. */
extern const rt_extension rt_predict_extension;

#endif
