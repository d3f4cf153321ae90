/* cuda_life.h — a program's life on the shared fixture's GPU, from opening to closing, for tests in which the driver
 * goes wrong at each of its calls.
 */
#ifndef CUDA_LIFE_H
#define CUDA_LIFE_H

#include "runtime/cuda/cuda_driver.h"
#include "tests/fake_cuda/cuda_fixture.h"

/* All functions of the driver that the runtime calls. */
enum {
#define ONE(name, suffix, parameters) +1
    CUDA_FUNCTION_COUNT = RT_CUDA_SYMBOL_MAP(ONE)
#undef ONE
};
extern const char *const cuda_functions[CUDA_FUNCTION_COUNT];

typedef struct cuda_life {
    mdot_status open_status, create_status, device_status;
    bool runs_on_gpu; /* once open and created */
    mdot_error err;   /* of the two first */
    int gpu_answers, cpu_answers;
    char message[1024]; /* of the third */
} cuda_life;

/* Opens, makes a context, runs calls alone and together, destroys, closes; fails the running test where an answer is
 * wrong. */
cuda_life cuda_live(const char *device);
/* What holds whatever failed; `is_required`: the device was asked for by name. */
void cuda_life_check(const cuda_life *l, bool is_required);
/* Whether anything told that the GPU failed. */
bool cuda_life_was_noticed(const cuda_life *l);

#endif
