/* predict_fixture.c — see predict_fixture.h. */
#include "tests/support/predict_fixture.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Compiling --------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const pb_buffer *bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
    assert_int_equal(fclose(file), 0);
}

static void write_model(const char *path, onnx_builder *b)
{
    pb_buffer bytes = onnx_finish(b);
    write_file(path, &bytes);
    pb_free(&bytes);
}

/* Finishes the models and compiles each as the entry of the same name. */
static void open_entries(predict_fixture *f, onnx_builder *const *models, const char *const *names, size_t count,
                         const mdot_open_options *open_options)
{
    enum { MOST = 2 };
    static const int64_t buckets[] = {PREDICT_SMALL_BUCKET, PREDICT_LARGE_BUCKET};
    char *folder = process_make_folder(), model_path[MOST][512], path[512];
    mdotc_entry entries[MOST];
    assert_compare(count, <=, MOST);
    snprintf(path, sizeof path, "%s/model.mdot", folder);
    for (size_t i = 0; i < count; i++) {
        snprintf(model_path[i], sizeof model_path[i], "%s/%s.onnx", folder, names[i]);
        write_model(model_path[i], models[i]);
        entries[i] = (mdotc_entry){sizeof(mdotc_entry), names[i], model_path[i]};
    }
    mdot_error err = {0};
    const mdotc_options options = {.struct_size = sizeof options, .buckets = buckets, .bucket_count = 2};
    mdot_status status = mdotc_compile(entries, count, path, &options, &err);
    if (status == MDOT_OK) status = mdot_predictor_open(path, open_options, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    process_remove_folder(folder);
}

void predict_open_with(predict_fixture *f, onnx_builder *b, const mdot_open_options *options)
{
    open_entries(f, (onnx_builder *const[]){b}, (const char *const[]){"predict"}, 1, options);
}

void predict_open(predict_fixture *f, onnx_builder *b) { predict_open_with(f, b, NULL); }

void predict_open_explained_with(predict_fixture *f, onnx_builder *b, onnx_builder *explain,
                                 const mdot_open_options *options)
{
    open_entries(f, (onnx_builder *const[]){b, explain}, (const char *const[]){"predict", "explain"}, 2, options);
}

void predict_open_explained(predict_fixture *f, onnx_builder *b, onnx_builder *explain)
{
    predict_open_explained_with(f, b, explain, NULL);
}

void predict_open_pair(predict_fixture *f, onnx_builder *encode, onnx_builder *evaluate)
{
    open_entries(f, (onnx_builder *const[]){encode, evaluate}, (const char *const[]){"encode", "evaluate"}, 2, NULL);
}

void predict_close(predict_fixture *f)
{
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    *f = (predict_fixture){0};
}

predict_fixture predict_bandwidth;

int predict_setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    predict_open(&predict_bandwidth, predict_bandwidth_model());
    return 0;
}

int predict_teardown(void **state)
{
    (void)state;
    predict_close(&predict_bandwidth);
    return 0;
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

enum { LOAD_COLUMNS = 19, HALF = 9 };

static void add_numbers(onnx_builder *b, const char *name, const char *shape, const int64_t *values)
{
    onnx_initializer(b, name, MDOT_DTYPE_I64, shape, values);
}

/* out = in[…, from : to] along `axis` */
static void add_slice(onnx_builder *b, const char *in, const char *out, int64_t from, int64_t to, int64_t axis)
{
    char starts[32], ends[32], axes[32], inputs[160];
    snprintf(starts, sizeof starts, "%s_from", out);
    snprintf(ends, sizeof ends, "%s_to", out);
    snprintf(axes, sizeof axes, "%s_axis", out);
    snprintf(inputs, sizeof inputs, "%s,%s,%s,%s", in, starts, ends, axes);
    add_numbers(b, starts, "1", &from);
    add_numbers(b, ends, "1", &to);
    add_numbers(b, axes, "1", &axis);
    onnx_node(b, "Slice", inputs, out);
}

/* step_ms = sum over rows of in[L, 1] · row[1, 3] */
static void add_answer(onnx_builder *b, const char *in, const float factors[3])
{
    const int64_t rows = 0;
    onnx_initializer(b, "factors", MDOT_DTYPE_F32, "1,3", factors);
    add_numbers(b, "rows", "1", &rows);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s,factors", in);
    onnx_node(b, "MatMul", inputs, "times");
    onnx_node(b, "ReduceSum", "times,rows", "step_ms");
    onnx_attr_int(b, "keepdims", 0);
    onnx_output(b, "step_ms");
}

static void add_count_column(onnx_builder *b)
{
    const int64_t last = 1;
    onnx_input(b, "operator_count", MDOT_DTYPE_F32, "L");
    add_numbers(b, "last", "1", &last);
    onnx_node(b, "Unsqueeze", "operator_count,last", "count");
}

/* Begins a model with the inputs of the bandwidth model, and computes "load", "count", "batch" and the bytes per
 * millisecond. */
static onnx_builder *begin_bandwidth_of(const char *numbers)
{
    const float bytes_of_ms_of_gbps = 1e6f;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "gpu", MDOT_DTYPE_F32, "9");
    onnx_input(b, "operator_load", MDOT_DTYPE_F32, "L,19");
    onnx_input(b, "configuration", MDOT_DTYPE_F32, numbers);
    add_count_column(b);
    add_slice(b, "configuration", "batch", 0, 1, 0);
    add_slice(b, "gpu", "gbps", 4, 5, 0);
    add_slice(b, "operator_load", "sample", 0, HALF, 1);
    add_slice(b, "operator_load", "step", HALF, 2 * HALF, 1);
    onnx_initializer(b, "unit", MDOT_DTYPE_F32, "1", &bytes_of_ms_of_gbps);
    onnx_node(b, "Mul", "sample,batch", "samples");
    onnx_node(b, "Add", "samples,step", "load");
    onnx_node(b, "Mul", "gbps,unit", "bytes_of_ms");
    return b;
}

static onnx_builder *begin_bandwidth(void) { return begin_bandwidth_of("8"); }

/* ms = load · columns, for all operators of a row */
static void add_row_ms(onnx_builder *b, const char *shape, const float *columns)
{
    onnx_initializer(b, "is_bytes", MDOT_DTYPE_F32, shape, columns);
    onnx_node(b, "MatMul", "load,is_bytes", "bytes");
    onnx_node(b, "Mul", "bytes,count", "all_bytes");
    onnx_node(b, "Div", "all_bytes,bytes_of_ms", "ms");
}

static const float bytes_alone[HALF] = {0, 1, 1, 0, 1, 1, 0, 1, 1}, half_to_twice[3] = {0.5f, 1, 2};

onnx_builder *predict_batch_model(void)
{
    onnx_builder *b = begin_bandwidth_of("1");
    add_row_ms(b, "9,1", bytes_alone);
    add_answer(b, "ms", half_to_twice);
    return b;
}

onnx_builder *predict_bandwidth_model(void)
{
    const float most = 1000;
    onnx_builder *b = begin_bandwidth();
    onnx_initializer(b, "most", MDOT_DTYPE_F32, "1", &most);
    add_row_ms(b, "9,1", bytes_alone);
    add_answer(b, "ms", half_to_twice);
    onnx_node(b, "Sub", "batch,most", "outside_training");
    onnx_output(b, "outside_training");
    return b;
}

onnx_builder *predict_explained(float operators, const char *number, const float *others)
{
    static const float is_bytes[HALF][3] = {{0, 0, 0}, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}, {0, 1, 0},
                                            {0, 1, 0}, {0, 0, 0}, {0, 0, 1}, {0, 0, 1}};
    static const int64_t both[2] = {0, 1};
    onnx_builder *b = begin_bandwidth();
    onnx_initializer(b, "operators", MDOT_DTYPE_F32, "1", &operators);
    onnx_initializer(b, "others", MDOT_DTYPE_F32, number, others);
    add_numbers(b, "both", "2", both);
    add_row_ms(b, "9,3", &is_bytes[0][0]);
    onnx_node(b, "Mul", "ms,operators", "operator_ms");
    onnx_output(b, "operator_ms");
    onnx_node(b, "ReduceSum", "ms,both", "all_ms");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "Mul", "all_ms,others", "other_ms");
    onnx_output(b, "other_ms");
    return b;
}

onnx_builder *predict_bandwidth_explained(void)
{
    static const float others[3] = {0.125f, 0.25f / 3, 0.125f / 3};
    return predict_explained(0.75f, "3", others);
}

onnx_builder *predict_bandwidth_explained_with_host(void)
{
    static const float others[4] = {0.125f, 0.25f / 3, 0.125f / 3, 0.5f};
    return predict_explained(0.75f, "4", others);
}

/* Each row's bytes, [L, 2]: those per sample and those per step. */
onnx_builder *predict_bandwidth_encode(void)
{
    static const float is_bytes[HALF] = {0, 1, 1, 0, 1, 1, 0, 1, 1};
    onnx_builder *b = onnx_begin(17);
    add_count_column(b);
    onnx_input(b, "operator_load", MDOT_DTYPE_F32, "L,19");
    add_slice(b, "operator_load", "sample", 0, HALF, 1);
    add_slice(b, "operator_load", "step", HALF, 2 * HALF, 1);
    onnx_initializer(b, "is_bytes", MDOT_DTYPE_F32, "9,1", is_bytes);
    onnx_node(b, "MatMul", "sample,is_bytes", "sample_bytes");
    onnx_node(b, "MatMul", "step,is_bytes", "step_bytes");
    onnx_node(b, "Mul", "sample_bytes,count", "all_sample_bytes");
    onnx_node(b, "Mul", "step_bytes,count", "all_step_bytes");
    onnx_node(b, "Concat", "all_sample_bytes,all_step_bytes", "row_bytes");
    onnx_attr_int(b, "axis", 1);
    onnx_output(b, "row_bytes");
    return b;
}

onnx_builder *predict_bandwidth_evaluate(const char *row_shape, int64_t block)
{
    static const float quantiles[3] = {0.5f, 1, 2};
    const float bytes_of_ms_of_gbps = 1e6f, most = 1000;
    const int64_t rows = 0, as_vector = block;
    char configurations[32], gpus[32];
    snprintf(configurations, sizeof configurations, "8,%lld", (long long)block);
    snprintf(gpus, sizeof gpus, "9,%lld", (long long)block);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "gpu", MDOT_DTYPE_F32, gpus);
    onnx_input(b, "row_bytes", MDOT_DTYPE_F32, row_shape);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, configurations);
    add_slice(b, "configuration", "batches", 0, 1, 0);
    add_slice(b, "batches", "batch", 0, 1, 1); /* for all configurations */
    add_slice(b, "gpu", "gbps", 4, 5, 0);
    onnx_initializer(b, "unit", MDOT_DTYPE_F32, "1", &bytes_of_ms_of_gbps);
    onnx_initializer(b, "most", MDOT_DTYPE_F32, "1", &most);
    onnx_initializer(b, "quantiles", MDOT_DTYPE_F32, "3,1", quantiles);
    add_numbers(b, "rows", "1", &rows);
    add_numbers(b, "as_vector", "1", &as_vector);
    onnx_node(b, "ReduceSum", "row_bytes,rows", "bytes"); /* [1, 2] */
    add_slice(b, "bytes", "sample", 0, 1, 1);
    add_slice(b, "bytes", "step", 1, 2, 1);
    onnx_node(b, "Mul", "sample,batch", "samples");
    onnx_node(b, "Add", "samples,step", "all_bytes");
    onnx_node(b, "Mul", "gbps,unit", "bytes_of_ms");
    onnx_node(b, "Div", "all_bytes,bytes_of_ms", "ms"); /* [1, block] */
    onnx_node(b, "Mul", "quantiles,ms", "step_ms");
    onnx_output(b, "step_ms");
    onnx_node(b, "Sub", "batches,most", "beyond");
    onnx_node(b, "Reshape", "beyond,as_vector", "outside_training");
    onnx_output(b, "outside_training");
    return b;
}

onnx_builder *predict_outside_model(int64_t reasons, int64_t block)
{
    static const float quantiles[3] = {0.5f, 1, 2}, half = 0.5f;
    char shape[32] = "8";
    if (block > 0) snprintf(shape, sizeof shape, "8,%lld", (long long)block);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "quantiles", MDOT_DTYPE_F32, block > 0 ? "3,1" : "3", quantiles);
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "1", &half);
    add_slice(b, "configuration", "batch", 0, 1, 0);
    add_slice(b, "configuration", "reasons", 0, reasons, 0);
    if (block > 0) { /* entry "evaluate" must read the cached features; here they are multiplied by zero */
        static const float nothing = 0;
        const int64_t rows = 0;
        onnx_input(b, "row_bytes", MDOT_DTYPE_F32, "L,2");
        onnx_initializer(b, "nothing", MDOT_DTYPE_F32, "1", &nothing);
        add_numbers(b, "rows", "1", &rows);
        onnx_node(b, "ReduceSum", "row_bytes,rows", "bytes"); /* [1, 2] */
        add_slice(b, "bytes", "sample", 0, 1, 1);
        onnx_node(b, "Mul", "sample,nothing", "none");
        onnx_node(b, "Add", "batch,none", "ms");
        onnx_node(b, "Mul", "quantiles,ms", "step_ms");
    } else {
        onnx_node(b, "Mul", "quantiles,batch", "step_ms");
    }
    onnx_output(b, "step_ms");
    onnx_node(b, "Sub", "reasons,half", "outside_training");
    onnx_output(b, "outside_training");
    return b;
}

double predict_bandwidth_ms(const mdot_job *job, const mdot_configuration *configuration)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find(configuration->gpu, &gpu, NULL), MDOT_OK);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    double bytes = 0;
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            bytes += op.per_step[phase].bytes_read + op.per_step[phase].bytes_written;
            bytes +=
                (double)configuration->batch * (op.per_sample[phase].bytes_read + op.per_sample[phase].bytes_written);
        }
    }
    return bytes / (gpu.memory_gbps * 1e6);
}

onnx_builder *predict_order_model(void)
{
    static const float is_written[LOAD_COLUMNS] = {0, 0, 1}, multiples[3] = {1e-6f, 2e-6f, 3e-6f}, one = 1;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "operator_position", MDOT_DTYPE_F32, "L,5");
    onnx_input(b, "operator_load", MDOT_DTYPE_F32, "L,19");
    add_slice(b, "operator_position", "index", 0, 1, 1);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "1", &one);
    onnx_initializer(b, "is_written", MDOT_DTYPE_F32, "19,1", is_written);
    onnx_node(b, "Add", "index,one", "number");
    onnx_node(b, "MatMul", "operator_load,is_written", "written");
    onnx_node(b, "Mul", "written,number", "terms");
    add_answer(b, "terms", multiples);
    return b;
}

onnx_builder *predict_settings_model(void) { return predict_settings_model_of(512, MDOT_SETTING_COUNT); }

onnx_builder *predict_settings_model_of(int64_t types, int64_t settings)
{
    enum { TYPE_ROWS = 512 };
    float number[TYPE_ROWS], pick[(1 + MDOT_SETTING_CAPACITY) * 3] = {0};
    char setting_shape[32], number_shape[32], pick_shape[32];
    snprintf(setting_shape, sizeof setting_shape, "L,%lld", (long long)settings);
    snprintf(number_shape, sizeof number_shape, "%lld,1", (long long)types);
    snprintf(pick_shape, sizeof pick_shape, "%lld,3", (long long)settings + 1);
    static const float smallest[3] = {1e-3f, 1e-3f, 1e-3f};
    for (int i = 0; i < TYPE_ROWS; i++) number[i] = (float)i;
    pick[0] = pick[(1 + MDOT_SETTING_KERNEL_H) * 3 + 1] = pick[(1 + MDOT_SETTING_INPUTS) * 3 + 2] = 1e-3f;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "operator_setting", MDOT_DTYPE_F32, setting_shape);
    onnx_input(b, "operator_type", MDOT_DTYPE_I64, "L");
    add_count_column(b);
    onnx_initializer(b, "number", MDOT_DTYPE_F32, number_shape, number);
    onnx_initializer(b, "pick", MDOT_DTYPE_F32, pick_shape, pick);
    onnx_initializer(b, "smallest", MDOT_DTYPE_F32, "3", smallest);
    const int64_t rows = 0;
    add_numbers(b, "rows", "1", &rows);
    onnx_node(b, "Gather", "number,operator_type", "type");
    onnx_node(b, "Concat", "type,operator_setting", "described");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "Mul", "described,count", "counted");
    onnx_node(b, "MatMul", "counted,pick", "picked");
    onnx_node(b, "ReduceSum", "picked,rows", "sums");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "Add", "sums,smallest", "step_ms");
    onnx_output(b, "step_ms");
    return b;
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

mdot_job_operator predict_operator(size_t i)
{
    static const char *const types[] = {"Conv", "Relu", "Add"};
    double size = 1000.0 * (double)(i + 1);
    mdot_job_operator op = {.struct_size = sizeof op, .type = types[i % 3], .known = true};
    op.setting[MDOT_SETTING_INPUTS] = 1;
    op.setting[MDOT_SETTING_KERNEL_H] = i % 3 == 0 ? 3 : 0;
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){10 * size, size, 2 * size};
    op.per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){20 * size, 3 * size, size};
    op.per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * size;
    if (i % 3 != 0) return op;
    op.parameters = size;
    op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){10 * size, 2 * size, 0};
    op.per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * size;
    return op;
}

mdot_job *predict_make_job(const mdot_job_operator *operators, size_t count)
{
    mdot_job_operator *described = calloc(count, sizeof *described);
    assert_non_null(described);
    memcpy(described, operators, count * sizeof *described);
    for (size_t i = 0; i < count; i++) {
        if (described[i].known && described[i].traits.number == 0)
            mdot_operator_traits_find(described[i].type, &described[i].traits);
    }
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = described, .operator_count = count, .batch = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    free(described);
    return job;
}

mdot_job *predict_job(size_t count, size_t period)
{
    mdot_job_operator *operators = calloc(count, sizeof *operators);
    uint32_t *inputs = calloc(count, sizeof *inputs);
    assert_non_null(operators);
    assert_non_null(inputs);
    for (size_t i = 0; i < count; i++) {
        operators[i] = predict_operator(i % period);
        if (i == 0) continue;
        inputs[i] = (uint32_t)(i - 1);
        operators[i].inputs = &inputs[i];
        operators[i].input_count = 1;
    }
    mdot_job *job = predict_make_job(operators, count);
    free(operators);
    free(inputs);
    return job;
}

mdot_configuration predict_configuration(int64_t batch, const char *gpu)
{
    return (mdot_configuration){.struct_size = sizeof(mdot_configuration), .batch = batch, .gpu = gpu};
}

uint32_t predict_warnings(mdot_prediction p)
{
    return p.warnings & ~(uint32_t)(MDOT_WARN_IMPLAUSIBLE | MDOT_WARN_NO_PARAMETERS);
}

mdot_prediction predict_one(predict_fixture *f, const mdot_job *job, const mdot_configuration *c)
{
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    if (mdot_predict(f->context, job, c, &prediction, &err) != MDOT_OK) fail_msg("%s", err.message);
    return prediction;
}

void predict_assert_close(double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * fabs(want))) fail_msg("%.9g, not %.9g", got, want);
}
