/* test_hardware_bound.c — no operator in the shipped predictor's answers is faster than the hardware. Each takes at
 * least the time for the FLOPs at the peak rate of the fastest unit allowed in the precision, whatever the layout,
 * software, compilation and batch. A 3x3 convolution outside tensor cores may use Winograd's algorithm, which needs
 * 2.25 times fewer multiplications.
 *
 * A job counts the BatchNormalization behind a convolution with it, and the normalisation's weight gradient beside the
 * convolution's. One kernel computes both normalisation gradients, and the predictor adds them to the data gradient,
 * also for a BatchNormalization alone. Therefore this test moves these FLOPs there, and holds them to the rate of the
 * computing units.
 *
 * The triples (network, GPU, configuration) are drawn by a fixed generator. MDOT_ALL_TRIPLES=1 checks every GPU in
 * every setting instead.
 *
 *     test_hardware_bound [FILE.job …]
 *
 * With files, each network is checked on every GPU in one of STRIDE settings, so a network meets every setting on some
 * GPU, and a GPU every setting with some network (hardware_bound_networks.sh runs it on 60 networks). The predictor
 * export checks 20,000 triples with networks from the training set. */
#include "tests/support/job_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"

#define FLOPS_PER_MS 1e9 /* of a TFLOP/s */
#define WINOGRAD 2.25
#define FLOAT_BYTES 4.0
enum { SAMPLE = 20000, EXAMPLES = 2, PRECISIONS = MDOT_PRECISION_PYTORCH + 1 };
enum { STRIDE = 17, OF_GPU = 7 }; /* STRIDE is a prime that divides no option's value count */

static const mdot_dim_binding sequence = {"sequence", 128, NULL};

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job **jobs;
    const char *const *paths;
    int network_count;
} fixture;

static const char *const *files; /* from the command line */
static int file_count;

static mdot_status read_network(const char *path, bool has_sequence, mdot_job **out_job, mdot_error *err)
{
    if (file_count > 0) return mdot_job_load(path, out_job, err);
    mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = has_sequence ? 1 : 0};
    return mdot_job_read(path, &options, out_job, err);
}

static int set_up(void **state)
{
    static const char *const examples[EXAMPLES] = {MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx",
                                                   MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx"};
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    *state = f;
    f->paths = file_count > 0 ? files : examples;
    f->network_count = file_count > 0 ? file_count : EXAMPLES;
    f->jobs = calloc((size_t)f->network_count, sizeof *f->jobs);
    if (f->jobs == NULL) return -1;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    for (int n = 0; status == MDOT_OK && n < f->network_count; n++)
        status = read_network(f->paths[n], n == 1, &f->jobs[n], &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    for (int n = 0; f->jobs != NULL && n < f->network_count; n++) mdot_job_destroy(f->jobs[n]);
    free(f->jobs);
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    free(f);
    return 0;
}

/* The operator's highest rate on any unit, in TFLOP/s. */
static double peak_of(const mdot_job_operator *op, const mdot_gpu *gpu, mdot_precision precision)
{
    static const char *const matmuls[] = {"Conv",      "ConvTranspose",      "Linear", "MatMul", "Einsum",
                                          "Attention", "MultiHeadAttention", "LSTM",   "GRU",    "RNN",
                                          NULL};
    bool is_matmul = false,
         is_window = op->setting[MDOT_SETTING_KERNEL_H] == 3 && op->setting[MDOT_SETTING_KERNEL_W] == 3;
    for (size_t i = 0; matmuls[i] != NULL; i++) is_matmul = is_matmul || strcmp(op->type, matmuls[i]) == 0;
    if (!is_matmul) return gpu->fp32_tflops;
    if (precision == MDOT_PRECISION_FP32) return gpu->fp32_tflops * (is_window ? WINOGRAD : 1);
    double vector = gpu->fp32_tflops * (is_window ? WINOGRAD : 1);
    bool may_be_half = precision != MDOT_PRECISION_TF32 && precision != MDOT_PRECISION_PYTORCH;
    return fmax(vector, may_be_half ? fmax(gpu->fp16_tflops, gpu->tf32_tflops) : gpu->tf32_tflops);
}

/* FLOPs per sample that the job counts in a phase for a BatchNormalization, alone or behind a convolution
 * (frontend/job/operator_costs.c): for each result 5 forward, 5 for the data gradient, 3 for the weight gradient. */
static double norm_flops(const mdot_job_operator *op, int phase)
{
    static const double of_result[MDOT_PHASE_COUNT] = {5, 5, 3};
    if (op->per_sample[phase].flops == 0) return 0;
    if (strcmp(op->type, "BatchNormalization") == 0)
        return of_result[phase] * op->per_sample[MDOT_PHASE_FORWARD].bytes_written / FLOAT_BYTES;
    if (op->setting[MDOT_SETTING_NORMALISED] == 0) return 0;
    return of_result[phase] * (double)op->setting[MDOT_SETTING_CHANNELS_OUT] *
           (double)op->setting[MDOT_SETTING_SIZE_OUT];
}

/* The same, by the phase whose kernel computes them. */
static double norm_flops_of_kernel(const mdot_job_operator *op, int phase)
{
    if (phase == MDOT_PHASE_WEIGHT_GRADIENT) return 0;
    double of_weights = phase == MDOT_PHASE_DATA_GRADIENT ? norm_flops(op, MDOT_PHASE_WEIGHT_GRADIENT) : 0;
    return norm_flops(op, phase) + of_weights;
}

static void check(const fixture *f, int network, const char *gpu_name, mdot_configuration c)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    mdot_explanation *e = NULL;
    const mdot_job *job = f->jobs[network];
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    c.struct_size = sizeof c;
    c.gpu = gpu_name;
    assert_int_equal(mdot_gpu_find(gpu_name, &gpu, NULL), MDOT_OK);
    if (mdot_explain(f->context, job, &c, &e, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_operator_time time = MDOT_INIT(mdot_operator_time);
        mdot_job_get_operator(job, i, &op);
        mdot_explanation_get_operator(e, i, &time);
        const double ms[MDOT_PHASE_COUNT] = {time.forward_ms, time.data_gradient_ms, time.weight_gradient_ms};
        int phases = c.mode == MDOT_MODE_INFERENCE ? 1 : MDOT_PHASE_COUNT;
        for (int phase = 0; phase < phases; phase++) {
            /* Explanation parts are scaled to add up to the step, which shortens them by less than 1 %. */
            double flops = (double)c.batch * (op.per_sample[phase].flops - norm_flops(&op, phase));
            flops += op.per_step[phase].flops;
            double of_norm = (double)c.batch * norm_flops_of_kernel(&op, phase) / gpu.fp32_tflops;
            double least = (flops / peak_of(&op, &gpu, c.precision) + of_norm) / FLOPS_PER_MS;
            if (!(ms[phase] >= least * (1 - 1e-2)))
                fail_msg("%s, %s, precision %d, layout %d, attention %d, compiled %u, torch %u, mode %d, batch "
                         "%lld: phase %d of operator %zu, a %s, takes %g ms, but at least %g at the peak rate",
                         f->paths[network], gpu_name, (int)c.precision, (int)c.layout, (int)c.attention, c.compiled,
                         c.torch, (int)c.mode, (long long)c.batch, phase, i, op.type, ms[phase], least);
        }
    }
    mdot_explanation_destroy(e);
}

static const uint32_t versions[] = {0, 110, 112, 201, 209};
static const int64_t batches[] = {1, 8, 64, 512};

/* Setting `number` among all combinations. torch.compile with PyTorch 1 is left out. */
static bool setting(unsigned number, mdot_configuration *out)
{
    mdot_configuration c = {0};
    c.precision = (mdot_precision)(number % PRECISIONS), number /= PRECISIONS;
    c.layout = (mdot_layout)(number % 2), number /= 2;
    c.compiled = number % 2, number /= 2;
    c.attention = number % 2 == 0 ? MDOT_ATTENTION_FLASH : MDOT_ATTENTION_EAGER, number /= 2;
    c.mode = (mdot_mode)(number % 2), number /= 2;
    c.torch = versions[number % 5], number /= 5;
    c.batch = batches[number % 4];
    *out = c;
    return c.compiled == 0 || c.torch == 0 || c.torch >= 200;
}
enum { SETTINGS = PRECISIONS * 2 * 2 * 2 * 2 * 5 * 4 };

static void no_operator_is_faster_than_the_hardware(void **state)
{
    const fixture *f = *state;
    size_t gpus = 0, checked = 0;
    mdot_configuration c;
    uint32_t random = 1;
    const char *const *names = mdot_gpu_names();
    bool is_all = getenv("MDOT_ALL_TRIPLES") != NULL;
    while (names[gpus] != NULL) gpus++;
    if (is_all || file_count > 0) {
        unsigned stride = is_all ? 1 : STRIDE;
        for (int n = 0; n < f->network_count; n++)
            for (size_t g = 0; g < gpus; g++)
                for (unsigned s = ((unsigned)n + OF_GPU * (unsigned)g) % stride; s < SETTINGS; s += stride)
                    if (setting(s, &c)) check(f, n, names[g], c), checked++;
        print_message("%zu triples of %d networks and %zu GPU models\n", checked, f->network_count, gpus);
        return;
    }
    while (checked < SAMPLE) {
        random = random * 1664525 + 1013904223;
        unsigned draw = random >> 8;
        if (!setting(draw % SETTINGS, &c)) continue;
        check(f, (int)(checked % EXAMPLES), names[draw / SETTINGS % gpus], c);
        checked++;
    }
}

int main(int count, char **arguments)
{
    files = (const char *const *)(arguments + 1);
    file_count = count - 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_operator_is_faster_than_the_hardware)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
