/* predict_extension.h — the interface of runtime/job: jobs, and predictions of them (mdot_predict.h).
 *
 * runtime/job uses only core.h of the other components, and they use only this header of it. Its own files share
 * job_model.h, a job in memory, and predict.h.
 */
#ifndef RT_PREDICT_EXTENSION_H
#define RT_PREDICT_EXTENSION_H

#include "runtime/core/core.h"

/* The tensors that calls of an artefact's entry "predict" read and write. NULL if the artefact cannot predict jobs. */
extern const rt_extension rt_predict_extension;

#endif
