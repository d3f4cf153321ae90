/* predict_extension.h — the interface of runtime/predict to runtime/components.c: the state of predictions in every
 * context (core.h). */
#ifndef RT_PREDICT_EXTENSION_H
#define RT_PREDICT_EXTENSION_H

#include "runtime/core/core.h"

/* The tensors that calls of an artefact's entry "predict" read and write. NULL if the artefact cannot predict jobs. */
extern const rt_extension rt_predict_extension;

#endif
