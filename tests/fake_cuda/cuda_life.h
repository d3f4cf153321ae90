/* cuda_life.h — a program's life on the shared fixture's GPU, from opening to closing, for tests in which each driver
 * call may fail. */
#pragma once

#include "runtime/cuda/cuda_driver.h"
#include "tests/fake_cuda/cuda_fixture.h"

/* All driver functions that the runtime calls. */
enum {
#define ONE(name, suffix, parameters) +1
    CUDA_FUNCTION_COUNT = RT_CUDA_SYMBOL_MAP(ONE)
#undef ONE
};
extern const char *const cuda_functions[CUDA_FUNCTION_COUNT];

typedef struct cuda_life {
    mdot_status open_status, create_status, device_status;
    bool runs_on_gpu; /* state after opening and creating */
    mdot_error err;   /* error of open_status or create_status */
    int gpu_answers, cpu_answers;
    char message[1024]; /* message of device_status */
} cuda_life;

/* Opens, makes a context, runs single calls and batches, destroys, closes. Fails the running test if an answer is
 * wrong. */
cuda_life cuda_live(const char *device);
/* Checks the invariants that hold for every failure. `is_required`: the device was requested by name. */
void cuda_life_check(const cuda_life *l, bool is_required);
/* Whether a status or message reported the GPU's failure. */
bool cuda_life_was_noticed(const cuda_life *l);
