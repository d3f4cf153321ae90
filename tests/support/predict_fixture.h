/* predict_fixture.h — small predictors of jobs whose answers have a closed form, compiled and opened, and jobs for
 * them. */
#pragma once

#include "mdot/mdot.h"
#include "tests/support/onnx_builder.h"

enum { PREDICT_SMALL_BUCKET = 8, PREDICT_LARGE_BUCKET = 32 };

typedef struct predict_fixture {
    mdot_predictor *predictor;
    mdot_context *context;
} predict_fixture;

/* Finishes the model, compiles it for the two buckets (zero buckets if the model has no length) and opens it. Fails
 * the running test if this fails. */
void predict_open(predict_fixture *f, onnx_builder *b);
void predict_open_with(predict_fixture *f, onnx_builder *b, const mdot_open_options *options);
/* The same with an additional entry "explain". */
void predict_open_explained(predict_fixture *f, onnx_builder *b, onnx_builder *explain);
void predict_open_explained_with(predict_fixture *f, onnx_builder *b, onnx_builder *explain,
                                 const mdot_open_options *options);
/* The same for a predictor with two entries. */
void predict_open_pair(predict_fixture *f, onnx_builder *encode, onnx_builder *evaluate);
void predict_close(predict_fixture *f);
/* predict_bandwidth_model as one fixture for all tests of a program. cmocka_run_group_tests opens and closes it. The
 * program exits with 77 if the machine is too old for compiled code. */
extern predict_fixture predict_bandwidth;
int predict_setup(void **state);
int predict_teardown(void **state);

/* Predicts the time to move the bytes of all rows at GPU bandwidth. The quantiles are half that time, the time itself,
 * and twice the time. Training covered batches up to 1000. */
onnx_builder *predict_bandwidth_model(void);
/* The same, but the batch is the only number it reads from a configuration, so all other options have analytic
 * estimates. */
onnx_builder *predict_batch_model(void);
/* Explains the answer by the operators' bytes per phase. Three quarters of the time belong to the operators. The rest
 * belongs to the optimizer, the host and the link as 3 : 2 : 1. */
onnx_builder *predict_bandwidth_explained(void);
onnx_builder *predict_bandwidth_explained_with_host(void); /* the host works for half of the step */
/* Explains the answer by such a part of the operators' times, and by these parts of their sum outside of them. */
onnx_builder *predict_explained(float operators, const char *number, const float *others);
/* The same as two entries; the second evaluates `block` configurations. "L,2" is the shape of the first entry's
 * result. */
onnx_builder *predict_bandwidth_encode(void);
onnx_builder *predict_bandwidth_evaluate(const char *row_shape, int64_t block);
/* The same in f64, computed from the job. */
double predict_bandwidth_ms(const mdot_job *job, const mdot_configuration *configuration);
/* Reads the first eight values of a configuration. The answers are the batch in ms, times .5, 1 and 2.
 * outside_training are the first `reasons` values, minus .5. The model serves as entry "predict", or as "evaluate" for
 * `block` configurations. */
onnx_builder *predict_outside_model(int64_t reasons, int64_t block);
/* Reads the operators in order. The answer is a sum over operators: result bytes per sample times (index plus one), in
 * nanoseconds; times 1, 2 and 3. */
onnx_builder *predict_order_model(void);
/* One plus the operator sums of type ids, kernel_h and inputs, in microseconds. */
onnx_builder *predict_settings_model(void);
/* The same for a predictor that knows so many types and settings. Inputs are summed only if the predictor knows the
 * input setting. */
onnx_builder *predict_settings_model_of(int64_t types, int64_t settings);

/* Operator `i` of an invented network whose operators are all different. FLOPs and bytes grow with i, and each
 * operator reads the previous one. Every third is a Conv, the others are Relu and Add. */
mdot_job_operator predict_operator(size_t i);
/* Known operators with empty traits get the traits of their type. */
mdot_job *predict_make_job(const mdot_job_operator *operators, size_t count);
/* A job of `count` such operators, repeated after `period`. */
mdot_job *predict_job(size_t count, size_t period);

mdot_configuration predict_configuration(int64_t batch, const char *gpu); /* all other fields have their defaults */
/* Makes one prediction. Fails the test if the prediction fails. */
mdot_prediction predict_one(predict_fixture *f, const mdot_job *job, const mdot_configuration *c);
/* The warnings, except those about implausible times and about jobs with zero parameters, because both are invented
 * here. */
uint32_t predict_warnings(mdot_prediction p);
void predict_assert_close(double got, double want); /* within 1e-5, because answers are f32 */
