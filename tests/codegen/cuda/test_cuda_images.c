/* test_cuda_images.c — predictors compiled for GPUs, as far as a machine without a GPU can check them. On every
 * architecture, the kernels from NVIDIA's compiler stay within their launch parameters. Failures to compile are
 * reported. tests/cuda_host tests the kernels' results. */
#include "codegen/cuda/cuda_target.h"
#include "mdot/mdot.h"
#include "mdot/mdotc.h"
#include "tests/support/assertions.h"
#include "tests/support/cubin_fixture.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char *folder, *model;
    char artefact[512];
    char warning[2048]; /* the last one */
    char *dump;         /* all dumped text */
    size_t dump_bytes;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->model = write_model(f->folder, "encoder.onnx", encoder_model(2));
    snprintf(f->artefact, sizeof f->artefact, "%s/encoder.mdot", f->folder);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    unsetenv("MDOT_NVRTC");
    process_remove_folder(f->folder);
    free(f->model);
    free(f->dump);
    free(f);
    return 0;
}

static void keep_warning(void *user, const char *message)
{
    fixture *f = user;
    snprintf(f->warning, sizeof f->warning, "%s", message);
}

static void keep_dump(void *user, const char *text)
{
    fixture *f = user;
    size_t bytes = strlen(text);
    f->dump = realloc(f->dump, f->dump_bytes + bytes + 1);
    assert_non_null(f->dump);
    memcpy(f->dump + f->dump_bytes, text, bytes + 1);
    f->dump_bytes += bytes;
}

static mdot_status compile(fixture *f, const char *model, const char *target, const char *kernel_precision,
                           const char *dump, mdot_error *err)
{
    static const int64_t buckets[] = {40};
    const mdotc_options options = {.struct_size = sizeof options,
                                   .buckets = buckets,
                                   .bucket_count = 1,
                                   .targets = &target,
                                   .target_count = target != NULL,
                                   .kernel_precision = kernel_precision,
                                   .dump_pass = dump,
                                   .dump = keep_dump,
                                   .warning = keep_warning,
                                   .user = f};
    const mdotc_entry entry = {sizeof entry, "predict", model};
    return mdotc_compile(&entry, 1, f->artefact, &options, err);
}

static mdot_predictor *compile_and_open(fixture *f, const char *model, const char *target, const char *kernel_precision)
{
    mdot_error err;
    mdot_predictor *predictor = NULL;
    if (compile(f, model, target, kernel_precision, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (mdot_predictor_open(f->artefact,
                            &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cpu"}, &predictor,
                            &err) == MDOT_INCOMPATIBLE)
        skip();
    if (predictor == NULL) fail_msg("%s", err.message);
    return predictor;
}

/* Registers are allocated to warps in units of 256. (CUDA C++ Programming Guide, "Technical Specifications".) */
static unsigned block_registers(const mdot_image_kernel_info *kernel)
{
    unsigned of_a_warp = (kernel->registers * 32 + 255) / 256 * 256;
    return of_a_warp * ((kernel->threads + 31) / 32);
}

static void assert_kernel_fits(const mdot_image_info *image, uint32_t sm, const mdot_image_kernel_info *kernel)
{
    bool multiplies = strcmp(image->kernel_precision, "fp32") != 0;
    if (kernel->spill_bytes != 0 || kernel->local_bytes != 0)
        fail_msg("%s, %s: %zu bytes of stack, %zu spilled", image->target, kernel->name, kernel->local_bytes,
                 kernel->spill_bytes);
    if (multiplies != (kernel->tensor_instructions > 0))
        fail_msg("%s, %s: %u tensor instructions in %s", image->target, kernel->name, kernel->tensor_instructions,
                 image->kernel_precision);
    if (block_registers(kernel) > 65536)
        fail_msg("%s, %s: %u registers in %u threads", image->target, kernel->name, kernel->registers, kernel->threads);
    if (kernel->shared_bytes > cu_shared_limit_bytes(sm))
        fail_msg("%s, %s: %zu bytes of shared memory", image->target, kernel->name, kernel->shared_bytes);
    assert_compare(kernel->threads, >=, 32);
    assert_compare(kernel->threads % 32, ==, 0);
    assert_compare(kernel->threads, <=, 1024);
    assert_compare(kernel->barriers, <=, 16);
    assert_compare(kernel->code_bytes, >, 0);
}

/* The CPU's images come first. */
static size_t cuda_image_count(const mdot_predictor *predictor, size_t *out_first)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    mdot_predictor_get_info(predictor, &info);
    size_t first = 0;
    while (mdot_predictor_get_image(predictor, first, &image) == MDOT_OK && strcmp(image.kind, "cpu") == 0) first++;
    *out_first = first;
    return info.image_count - first;
}

static void assert_images_fit(const mdot_predictor *predictor)
{
    size_t first;
    assert_int_equal(cuda_image_count(predictor, &first), CU_TARGETS);
    for (size_t i = 0; i < CU_TARGETS; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        mdot_image_kernel_info kernel = MDOT_INIT(mdot_image_kernel_info);
        assert_int_equal(mdot_predictor_get_image(predictor, first + i, &image), MDOT_OK);
        assert_string_equal(image.kind, "cuda");
        assert_string_equal(image.target, cubin_architectures[i].name);
        assert_compare(image.weights_bytes, >, 0);
        assert_int_equal(mdot_predictor_get_image_kernel(predictor, first + i, 0, 0, &kernel), MDOT_OK);
        assert_kernel_fits(&image, cu_targets[i].sm, &kernel);
    }
}

static void skip_without_every_architecture(void)
{
    cu_nvrtc nvrtc = cubin_nvrtc_or_skip();
    if (!cubin_is_known(&nvrtc, &cubin_architectures[CUBIN_ARCHITECTURES - 1])) skip();
}

static void kernels_fit_every_architecture(void **state)
{
    fixture *f = *state;
    skip_without_every_architecture();
    mdot_predictor *predictor = compile_and_open(f, f->model, "cuda", NULL);
    assert_string_equal(f->warning, "");
    assert_images_fit(predictor);
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    size_t first;
    cuda_image_count(predictor, &first);
    assert_int_equal(mdot_predictor_get_image(predictor, first, &image), MDOT_OK);
    assert_string_equal(image.kernel_precision, "fp16");
    assert_int_equal(mdot_predictor_get_image(predictor, first + 1, &image), MDOT_OK);
    assert_string_equal(image.kernel_precision, "bf16");
    mdot_predictor_close(predictor);
}

static void kernels_in_fp32_fit_every_architecture(void **state)
{
    fixture *f = *state;
    skip_without_every_architecture();
    mdot_predictor *predictor = compile_and_open(f, f->model, "cuda", "fp32");
    assert_string_equal(f->warning, "");
    assert_images_fit(predictor);
    mdot_predictor_close(predictor);
}

static void kernels_of_the_reference_predictor_fit_every_architecture(void **state)
{
    fixture *f = *state;
    static const char model[] = MDOT_SHARED_ONNX "/predictor/reference_a/model.onnx";
    skip_without_every_architecture();
    if (access(model, R_OK) != 0) {
        print_message("skipped: no %s\n", model);
        skip();
    }
    mdot_predictor *predictor = compile_and_open(f, model, "cuda", NULL);
    assert_string_equal(f->warning, "");
    assert_images_fit(predictor);
    mdot_predictor_close(predictor);
}

static void assembler_and_source_can_be_dumped(void **state)
{
    fixture *f = *state;
    cubin_nvrtc_or_skip();
    assert_int_equal(compile(f, f->model, "sm_86", NULL, "ptxas", NULL), MDOT_OK);
    assert_int_equal(strncmp(f->dump, "sm_86:\n", 7), 0);
    assert_non_null(strstr(f->dump, "bytes spill stores"));
}

typedef struct rows {
    fixture *f; /* holds the warning */
    int cpu_passed, gpu_passed, gpu_failed;
} rows;

static void count_row(void *user, const mdotc_verify_row *row)
{
    rows *r = user;
    bool on_gpu = strcmp(row->level, "cuda:0") == 0;
    r->cpu_passed += !on_gpu && row->passed;
    r->gpu_passed += on_gpu && row->passed;
    r->gpu_failed += on_gpu && !row->passed;
}

static void keep_verify_warning(void *user, const char *message) { keep_warning(((rows *)user)->f, message); }

static rows verify(fixture *f, const char *libcuda, bool *out_passed)
{
    rows r = {.f = f};
    setenv("MDOT_LIBCUDA", libcuda, 1);
    const mdotc_verify_options options = {
        .struct_size = sizeof options, .row = count_row, .warning = keep_verify_warning, .user = &r};
    mdot_error err;
    if (mdotc_verify(f->artefact, f->model, &options, out_passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    unsetenv("MDOT_LIBCUDA");
    return r;
}

/* The fake driver has an sm_90 whose kernels answer without computing, so verification must fail. */
static void verification_compares_results_of_the_gpu(void **state)
{
    fixture *f = *state;
    cubin_nvrtc_or_skip();
    mdot_predictor_close(compile_and_open(f, f->model, "sm_90", NULL));
    bool passed = true;
    rows r = verify(f, MDOT_FAKE_CUDA, &passed);
    assert_false(passed);
    assert_compare(r.cpu_passed, >, 0);
    assert_int_equal(r.gpu_passed, 0);
    assert_int_equal(r.gpu_failed, 1);
    assert_string_equal(f->warning, "");
}

static void verification_without_a_gpu_reports_it(void **state)
{
    fixture *f = *state;
    cubin_nvrtc_or_skip();
    mdot_predictor_close(compile_and_open(f, f->model, "sm_90", NULL));
    bool passed = false;
    rows r = verify(f, "/nonexistent/libcuda.so", &passed);
    assert_true(passed);
    assert_compare(r.cpu_passed, >, 0);
    assert_int_equal(r.gpu_passed + r.gpu_failed, 0);
    assert_non_null(strstr(f->warning, "CUDA code is not verified"));
}

static void source_can_be_dumped_without_nvrtc(void **state)
{
    fixture *f = *state;
    setenv("MDOT_NVRTC", "/nonexistent", 1);
    assert_int_equal(compile(f, f->model, NULL, NULL, "cuda", NULL), MDOT_OK);
    assert_non_null(strstr(f->dump, "extern \"C\" __global__"));
    assert_null(strstr(f->dump, "#include"));
}

static void missing_nvrtc_gives_installation_advice(void **state)
{
    fixture *f = *state;
    setenv("MDOT_NVRTC", "/nonexistent", 1);
    mdot_error err;
    assert_int_equal(compile(f, f->model, "sm_90a", NULL, NULL, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "NVRTC"));
    assert_non_null(strstr(err.message, "install"));
    assert_int_not_equal(access(f->artefact, F_OK), 0);
    assert_int_equal(compile(f, f->model, "cpu", NULL, NULL, &err), MDOT_OK);
}

/* y = the running f64 sum over x, unsupported in CUDA code. */
static void unsupported_graphs_stay_on_the_cpu_with_a_warning(void **state)
{
    fixture *f = *state;
    setenv("MDOT_NVRTC", "/nonexistent", 1); /* NVRTC is unnecessary in this case */
    onnx_builder *b = onnx_begin(17);
    const int64_t axis = 0;
    onnx_input(b, "x", MDOT_DTYPE_F64, "N");
    onnx_initializer(b, "axis", MDOT_DTYPE_I64, "", &axis);
    onnx_node(b, "CumSum", "x,axis", "y");
    onnx_output(b, "y");
    char *model = write_model(f->folder, "sum.onnx", onnx_finish(b));
    mdot_predictor *predictor = compile_and_open(f, model, "sm_80", NULL);
    if (strstr(f->warning, "CPU") == NULL || strstr(f->warning, "CumSum") == NULL) fail_msg("\"%s\"", f->warning);
    size_t first;
    assert_int_equal(cuda_image_count(predictor, &first), 0);
    mdot_predictor_close(predictor);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_fit_every_architecture, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_in_fp32_fit_every_architecture, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels_of_the_reference_predictor_fit_every_architecture, setup, teardown),
        cmocka_unit_test_setup_teardown(assembler_and_source_can_be_dumped, setup, teardown),
        cmocka_unit_test_setup_teardown(verification_compares_results_of_the_gpu, setup, teardown),
        cmocka_unit_test_setup_teardown(verification_without_a_gpu_reports_it, setup, teardown),
        cmocka_unit_test_setup_teardown(source_can_be_dumped_without_nvrtc, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_nvrtc_gives_installation_advice, setup, teardown),
        cmocka_unit_test_setup_teardown(unsupported_graphs_stay_on_the_cpu_with_a_warning, setup, teardown),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
