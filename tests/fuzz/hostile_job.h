/* hostile_job.h — jobs from arbitrary bytes, and predictions of them. */
#pragma once

#include "mdot/mdotjob.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes that begin like a `.job` file are read as one, after correcting size and checksum, because otherwise every
 * input would fail there. All other bytes are an ONNX model. A failure has a message and makes no job. */
mdot_status hostile_job(const uint8_t *data, size_t size, mdot_job **out_job);

enum { HOSTILE_DRAWN_BYTES = 128 };

/* Opens the predictors for hostile_predict, once. */
void hostile_predict_open(void);
void hostile_predict_close(void);
/* Predicts a job under a few configurations, drawn by HOSTILE_DRAWN_BYTES bytes, and aborts if an invariant breaks: a
 * prediction is refused with a message, or has positive, finite times with the median inside the interval, and sizes
 * that are finite and not negative. An explanation adds up to the prediction. A sweep and an encoding give the same
 * answers as single predictions. Returns the number of predicted configurations. */
int hostile_predict(const mdot_job *job, const uint8_t *drawn);
