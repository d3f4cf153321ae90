/* predict_fixture.h — small predictors of jobs with answers in closed form, compiled and opened, and jobs for them. */
#ifndef TEST_PREDICT_FIXTURE_H
#define TEST_PREDICT_FIXTURE_H

#include "mdot/mdot.h"
#include "tests/support/onnx_builder.h"

enum { PREDICT_SMALL_BUCKET = 8, PREDICT_LARGE_BUCKET = 32 };

typedef struct predict_fixture {
    mdot_predictor *predictor;
    mdot_context *context;
} predict_fixture;

/* Finishes the model, compiles it for the two buckets (a model without a length for none) and opens it. Fails the
 * running test where that fails. */
void predict_open(predict_fixture *f, onnx_builder *b);
void predict_open_with(predict_fixture *f, onnx_builder *b, const mdot_open_options *options);
/* The same with an entry "explain" beside it. */
void predict_open_explained(predict_fixture *f, onnx_builder *b, onnx_builder *explain);
void predict_open_explained_with(predict_fixture *f, onnx_builder *b, onnx_builder *explain,
                                 const mdot_open_options *options);
/* The same of a predictor in two pieces. */
void predict_open_pair(predict_fixture *f, onnx_builder *encode, onnx_builder *price);
void predict_close(predict_fixture *f);
/* predict_bandwidth_model, one for all tests of a program, as cmocka_run_group_tests opens and closes it. The program
 * ends with 77 where the machine is too old for compiled code. */
extern predict_fixture predict_bandwidth;
int predict_setup(void **state);
int predict_teardown(void **state);

/* Time to move a bag's bytes at the GPU's bandwidth; the quantiles are half of it, it, and twice it. Batches above 1000
 * are outside its training. */
onnx_builder *predict_bandwidth_model(void);
/* What its answer is made of: operators' bytes by phase; three quarters of them the operators', the rest the
 * optimizer's, the host's and the link's as 3 : 2 : 1. */
onnx_builder *predict_bandwidth_explained(void);
/* The same in two pieces, of which the second prices `block` configurations; "L,2" is what the first writes. */
onnx_builder *predict_bandwidth_encode(void);
onnx_builder *predict_bandwidth_price(const char *row_shape, int64_t block);
/* The same in f64, from the job itself. */
double predict_bandwidth_ms(const mdot_job *job, const mdot_configuration *configuration);
/* Of the first eight numbers of a configuration: the batch in ms, times .5, 1 and 2; outside_training are the first
 * `reasons` of them, less .5. As an entry "predict", or of `block` configurations for "price". */
onnx_builder *predict_outside_model(int64_t reasons, int64_t block);
/* Reads a sequence: the bytes that a sample writes, each operator's times its index plus one, in nanoseconds; times 1,
 * 2 and 3. */
onnx_builder *predict_order_model(void);
/* One plus the sums over operators of type numbers, of kernel_h and of inputs, in microseconds. */
onnx_builder *predict_settings_model(void);
/* The same of a predictor that knows so many types and settings; inputs only where it knows them. */
onnx_builder *predict_settings_model_of(int64_t types, int64_t settings);

/* Operator `i` of a made-up network whose operators are all different: loads grow with i, and it reads the one before.
 * Every third is a Conv, the others Relu and Add. */
mdot_job_operator predict_operator(size_t i);
/* Known operators without traits get those of their type. */
mdot_job *predict_make_job(const mdot_job_operator *operators, size_t count);
/* A job of `count` such operators, repeated after `period`. */
mdot_job *predict_job(size_t count, size_t period);

mdot_configuration predict_configuration(int64_t batch, const char *gpu); /* everything else by default */
/* One prediction, which fails the test where it fails. */
mdot_prediction predict_one(predict_fixture *f, const mdot_job *job, const mdot_configuration *c);
/* Without what is said of times that are no plausible ones and of jobs that learn nothing: both are made up here. */
uint32_t predict_warnings(mdot_prediction p);
void predict_assert_close(double got, double want); /* within 1e-5 of it: answers are f32 */

#endif
