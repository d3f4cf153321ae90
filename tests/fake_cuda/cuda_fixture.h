/* cuda_fixture.h — the artefact fixture on the fake libcuda. Its kernels are the artefact's CPU code, so a correct
 * launch gives the CPU's results. Each answer of entry "predict" contains a mark of the answering device.
 *
 * The first image byte is the image's number. Tiles are small, so an item has several blocks: 1 row in bucket 4, with
 * inputs passed in the parameter, 2 rows in bucket 16, with inputs in memory.
 *
 * Programs with this fixture replace the system's clock, so the measurements for "auto" and the time limits are
 * independent of the machine. The clock only advances when it is read. */
#pragma once

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/artefact_fixture.h"

enum { CUDA_FIXTURE_ON_GPU = 100 }; /* about[0] of entry "predict" on the GPU */

typedef struct cuda_fixture {
    fixture artefact;
    char *path;
    mdot_predictor *cpu; /* the same artefact, opened for the CPU */
    mdot_context *cpu_context;
    uint32_t timeout_ms; /* for its predictors; longer than thread scheduling delays on any machine */
} cuda_fixture;

/* Exits with 77 if the machine lacks the level of the fixture's code. */
void cuda_fixture_open(cuda_fixture *f);
void cuda_fixture_close(cuda_fixture *f);
/* One fixture for all tests of a program. cmocka_run_group_tests opens and closes it. */
extern cuda_fixture cuda_fixture_shared;
int cuda_fixture_setup(void **state);
int cuda_fixture_teardown(void **state);

/* Resets the fake library to two sm_90 devices with the kernels. Each has 8 multiprocessors that hold two blocks. A
 * call takes 2 us on them and 1 ms on the CPU. */
void cuda_fixture_reset(cuda_fixture *f);
/* The same with this much memory per device; 0 = enough. */
void cuda_fixture_reset_memory(cuda_fixture *f, size_t memory_bytes);
/* Sets the clock's advance per reading: within a GPU call, which reads it once more, and otherwise. */
void cuda_fixture_set_clock(uint64_t gpu_ns, uint64_t other_ns);

/* Opens f->path on `device`. */
mdot_status cuda_fixture_predictor(const cuda_fixture *f, const char *device, mdot_predictor **out_predictor,
                                   mdot_error *err);

typedef struct cuda_opened {
    mdot_predictor *predictor;
    mdot_context *context;
} cuda_opened;

/* Opens f->path on `device` and creates a context. The second function resets the fake library before. Both fail the
 * running test on errors. */
cuda_opened cuda_open_on(const cuda_fixture *f, const char *device);
cuda_opened cuda_open_fresh(cuda_fixture *f, const char *device);
/* Closes both. Fails the running test if the fake library has a complaint or live objects. */
void cuda_finish(cuda_opened *o);
void cuda_fixture_assert_clean(void);

/* A call of entry "predict". */
typedef struct predict_call {
    float x[FIXTURE_MAX_LENGTH][2], y[FIXTURE_MAX_LENGTH];
    bool keep[FIXTURE_MAX_LENGTH];
    int64_t bias, about[4], length;
    const void *inputs[3];
    void *outputs[2];
} predict_call;

/* Fills the inputs, which depend on the length and the seed. */
void predict_prepare(predict_call *c, int64_t length, int seed);
/* Runs the call in a context of f->path. */
mdot_status predict_run(mdot_context *context, predict_call *c, mdot_error *err);
/* Whether the outputs are correct for the inputs, and come from the GPU or from the CPU. */
bool predict_is_right(const predict_call *c, bool on_gpu);
/* Fails the running test if the outputs are wrong. */
void predict_assert(const predict_call *c, bool on_gpu);
