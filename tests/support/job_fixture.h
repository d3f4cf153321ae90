/* job_fixture.h — reads a built model as a training job in one line, and inspects the result. */
#pragma once

#include "mdot/mdotjob.h"
#include "tests/support/onnx_builder.h"

typedef struct job_reading {
    mdot_status status;
    mdot_error err;
    mdot_job *job;
    char warnings[4096];
} job_reading;

/* Begins a model with one input, "x", of this shape in float32. */
onnx_builder *job_begin(const char *shape);
/* Finishes the model and reads it. End every reading with job_end. */
job_reading job_read_model(onnx_builder *b, const mdot_dim_binding *dims, size_t dim_count);
/* Expects that the model is read, and otherwise prints the message. */
job_reading job_expect(onnx_builder *b);
/* Like job_expect, for a model whose only missing part is the output. */
job_reading job_expect_output(onnx_builder *b, const char *output);
void job_end(job_reading *r);

mdot_job_info job_info(const job_reading *r);
mdot_job_operator job_operator(const job_reading *r, size_t index);
/* Expects these operator types in order, separated by spaces. */
void job_expect_types(const job_reading *r, const char *expected);
void job_expect_load(mdot_load load, double flops, double read, double written);
/* Expects two readings to agree in everything that a predictor reads. */
void job_expect_same(const job_reading *a, const job_reading *b);

/* Adds a Conv with a weight and optionally a bias. */
void job_add_conv(onnx_builder *b, const char *in, const char *out, const char *weight_shape, int64_t group, bool bias);
