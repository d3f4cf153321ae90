/* cuda_fixture.h — the artefact fixture on the fake libcuda: its kernels are the artefact's own CPU code, so a right
 * launch gives the CPU's results; each answer of entry "predict" tells which of the two gave it.
 *
 * The images are told apart by their first byte, which is their number. Tiles are small, so that an item has several
 * blocks: 1 row in bucket 4, whose inputs go through the parameter, 2 rows in bucket 16, whose inputs do not.
 *
 * Programs that use it have a clock of their own in place of the system's, so that neither what "auto" measures nor a
 * time limit depends on the machine: it stands still but when it is read.
 */
#ifndef CUDA_FIXTURE_H
#define CUDA_FIXTURE_H

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/artefact_fixture.h"

enum { CUDA_FIXTURE_ON_GPU = 100 }; /* about[0] of entry "predict" there */

typedef struct cuda_fixture {
    fixture artefact;
    char *path;
    mdot_predictor *cpu; /* the same, opened for the CPU */
    mdot_context *cpu_context;
    uint32_t timeout_ms; /* of predictors that it opens: longer than any machine's threads take to get their turn */
} cuda_fixture;

/* Exits with 77 where the machine does not run the fixture's code. */
void cuda_fixture_open(cuda_fixture *f);
void cuda_fixture_close(cuda_fixture *f);
/* One for all tests of a program, as cmocka_run_group_tests opens and closes it. */
extern cuda_fixture cuda_fixture_shared;
int cuda_fixture_setup(void **state);
int cuda_fixture_teardown(void **state);

/* The fake library anew, as two sm_90 devices of 8 multiprocessors that hold two blocks each, with the kernels; a call
 * takes 2 us on them and 1 ms on the CPU. */
void cuda_fixture_reset(cuda_fixture *f);
/* The same with this much memory on a device; 0: enough. */
void cuda_fixture_reset_memory(cuda_fixture *f, size_t memory_bytes);
/* How far the clock goes on at each reading: within a GPU's call, which reads it once more, and otherwise. */
void cuda_fixture_set_clock(uint64_t gpu_ns, uint64_t other_ns);

/* Opens f->path on `device`. */
mdot_status cuda_fixture_predictor(const cuda_fixture *f, const char *device, mdot_predictor **out_predictor,
                                   mdot_error *err);

typedef struct cuda_opened {
    mdot_predictor *predictor;
    mdot_context *context;
} cuda_opened;

/* f->path on `device` with a context; the second kind on the fake library anew. Fail the running test where that fails.
 */
cuda_opened cuda_open_on(const cuda_fixture *f, const char *device);
cuda_opened cuda_open_fresh(cuda_fixture *f, const char *device);
/* Closes both and fails the running test when the fake library has a complaint or something is alive in it. */
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

/* Inputs that depend on the length and the seed. */
void predict_prepare(predict_call *c, int64_t length, int seed);
/* Runs it in a context of f->path. */
mdot_status predict_run(mdot_context *context, predict_call *c, mdot_error *err);
/* Whether the outputs are those of the inputs, computed on the GPU or on the CPU. */
bool predict_is_right(const predict_call *c, bool on_gpu);
/* Fails the running test where they are not. */
void predict_assert(const predict_call *c, bool on_gpu);

#endif
