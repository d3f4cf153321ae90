/* test_job_memory.c — frontend/: every arena allocation fails once while a job is read. The reader reports
 * OUT_OF_MEMORY each time. Unlike tests/fault, where whole arena chunks fail, this test fails each name, node and
 * array. The linker redirects the arena functions to those below.
 *
 * MDOT_ALL_FAULTS=1 in the environment fails every allocation in the larger models, too. Otherwise a growing distance
 * lies between two failures. */
#include "ir/arena.h"
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long calls, fail_at;

void *__real_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
void *__wrap_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
void *__real_ir_arena_grow(ir_arena *arena, void *array, int count, int *io_capacity, size_t element_bytes);
void *__wrap_ir_arena_grow(ir_arena *arena, void *array, int count, int *io_capacity, size_t element_bytes);
char *__wrap_ir_arena_strndup(ir_arena *arena, const char *text, size_t length);
char *__wrap_ir_arena_strdup(ir_arena *arena, const char *text);
char *__wrap_ir_arena_printf(ir_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An allocation of more than SIZE_MAX bytes fails as one without memory does, and the arena remembers it. */
void *__wrap_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes)
{
    bool fails = ++calls == fail_at;
    return __real_ir_arena_alloc(arena, fails ? SIZE_MAX : count, fails ? 2 : size_bytes);
}

void *__wrap_ir_arena_grow(ir_arena *arena, void *array, int count, int *io_capacity, size_t element_bytes)
{
    if (count >= *io_capacity && ++calls == fail_at) return __real_ir_arena_alloc(arena, SIZE_MAX, 2);
    return __real_ir_arena_grow(arena, array, count, io_capacity, element_bytes);
}

char *__wrap_ir_arena_strndup(ir_arena *arena, const char *text, size_t length)
{
    char *copy = __wrap_ir_arena_alloc(arena, length + 1, 1);
    if (copy != NULL && length > 0) memcpy(copy, text, length);
    return copy;
}

char *__wrap_ir_arena_strdup(ir_arena *arena, const char *text)
{
    return __wrap_ir_arena_strndup(arena, text, strlen(text));
}

char *__wrap_ir_arena_printf(ir_arena *arena, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    assert_compare(length, >=, 0);
    char *copy = __wrap_ir_arena_strndup(arena, text, (size_t)length);
    free(text);
    return copy;
}

static const char *const frozen[] = {"encoder.layer.0"};
static const mdot_job_freezing freezing = {
    .struct_size = sizeof freezing, .frozen = frozen, .frozen_count = sizeof frozen / sizeof *frozen};
static const mdot_dim_binding sequence = {.name = "sequence", .value = 16};

/* Two named blocks in a list, a folded convolution, unknown operators, dropout, a parameter among the inputs, and a
 * training step's nodes. */
static pb_buffer make_model(void)
{
    static const int64_t zero = 0, one = 1, axes[] = {2, 3};
    static const float half = 0.5F;
    onnx_builder *b = job_begin("N,2,8");
    onnx_input(b, "map", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_input(b, "head.weight", MDOT_DTYPE_F32, "8,8");
    onnx_input(b, "loose", MDOT_DTYPE_F32, "8");
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "axes", MDOT_DTYPE_I64, "2", axes);
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "", &half);
    onnx_initializer(b, "encoder.layer.0.dense.weight", MDOT_DTYPE_F32, "8,8", NULL);
    onnx_initializer(b, "encoder.layer.0.dense.bias", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "encoder.layer.1.dense.weight", MDOT_DTYPE_F32, "8,8", NULL);
    onnx_initializer(b, "encoder.layer.1.dense.bias", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "conv.weight", MDOT_DTYPE_F32, "8,3,3,3", NULL);
    onnx_initializer(b, "conv.weight_bias", MDOT_DTYPE_F32, "8", NULL);
    onnx_node(b, "SplitToSequence", "x", "parts");
    onnx_attr_int(b, "axis", 1);
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "SequenceAt", "parts,zero", "a");
    onnx_node(b, "SequenceAt", "parts,one", "c");
    onnx_node(b, "Add", "a,c", "in");
    onnx_node(b, "MatMul", "in,encoder.layer.0.dense.weight", "m0");
    onnx_node(b, "Add", "m0,encoder.layer.0.dense.bias", "b0");
    onnx_node(b, "Relu", "b0", "r0");
    onnx_node_name(b, "/encoder/layer.0/Relu");
    onnx_node(b, "MatMul", "r0,encoder.layer.1.dense.weight", "m1");
    onnx_node(b, "Add", "m1,encoder.layer.1.dense.bias", "b1");
    onnx_node(b, "Relu", "b1", "r1");
    onnx_node_name(b, "/encoder/layer.1/Relu");
    onnx_node(b, "Conv", "map,conv.weight,conv.weight_bias", "folded");
    onnx_node(b, "ReduceMean", "folded,axes", "mean");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "RandomUniformLike", "r1", "noise");
    onnx_node(b, "Less", "noise,half", "mask");
    onnx_node(b, "Where", "mask,r1,half", "kept");
    onnx_node(b, "Add", "kept,mean", "sum");
    onnx_node(b, "com.example:Fancy", "sum", "fancy,spare");
    onnx_node(b, "Mul", "fancy,loose", "scaled");
    onnx_node(b, "MatMul", "scaled,head.weight", "y");
    onnx_output(b, "y");
    onnx_node(b, "com.microsoft:SoftmaxGrad", "y,y", "y_grad");
    onnx_node(b, "com.microsoft:FusedMatMulGrad", "y_grad,fancy", "loose_grad");
    onnx_node(b, "com.microsoft:AdamWOptimizer", "loose_grad", "updated");
    onnx_output(b, "updated");
    return onnx_finish(b);
}

static mdot_status read_with_fault(const pb_buffer *model, const mdot_job_options *options, long at, mdot_job **out_job,
                                   mdot_error *err)
{
    calls = 0;
    fail_at = at;
    mdot_status status = mdot_job_read_bytes(model->data, model->size, "model", options, out_job, err);
    fail_at = 0;
    return status;
}

static void fail_each(const pb_buffer *model, const mdot_job_options *options, bool all)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (read_with_fault(model, options, 0, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(job);
    job = NULL;
    long count = calls, failed = 0;
    for (long at = 1; at <= count; at += all ? 1 : 1 + at / 100, failed++) {
        mdot_status status = read_with_fault(model, options, at, &job, &err);
        if (status != MDOT_OUT_OF_MEMORY || job != NULL)
            fail_msg("allocation %ld of %ld: status %d, %s", at, count, (int)status, err.message);
    }
    print_message("%ld of %ld allocations failed\n", failed, count);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    pb_buffer model = make_model();
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    fail_each(&model, &options, true);
    options.keep_names = 1;
    fail_each(&model, &options, true);
    options.freezing = &freezing;
    fail_each(&model, &options, true);
    pb_free(&model);
}

static pb_buffer read_file(const char *name)
{
    char path[512];
    pb_buffer model = {0};
    snprintf(path, sizeof path, "%s/tests/support/fixture/exports/%s.onnx", MDOT_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s cannot be opened", path);
    static unsigned char bytes[1 << 20];
    pb_raw(&model, bytes, fread(bytes, 1, sizeof bytes, file));
    assert_true(feof(file));
    fclose(file);
    return model;
}

static void exported_networks_report_failed_allocations(void **state)
{
    (void)state;
    static const char *const names[] = {"resnet18.training", "mobilenetv3_small.dynamo-inference",
                                        "bert-tiny.inference", "bert-tiny-sdpa.dynamo-inference"};
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.dims = &sequence;
    options.dim_count = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pb_buffer model = read_file(names[i]);
        fail_each(&model, &options, getenv("MDOT_ALL_FAULTS") != NULL);
        pb_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(exported_networks_report_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
