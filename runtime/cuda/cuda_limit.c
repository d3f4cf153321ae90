/* cuda_limit.c — calls of the driver that may never return, as cuInit does on a machine whose GPU hangs, made by a
 * thread of their own that is waited for no longer than a limit.
 *
 * A thread that is blocked in the driver cannot be ended: it is left behind, with a state of its own that nobody else
 * reads. Should it return after all, it undoes what it did. Until then the driver is not asked again, so that a
 * program that opens predictors all day leaves one thread behind, not one a time.
 */
#include "runtime/cuda/cuda_device.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum progress { RUNNING, DONE, ABANDONED } progress;

typedef struct task {
    const rt_cuda_step *step;
    _Atomic int progress;
    mdot_status status;
    mdot_error err;
    _Alignas(max_align_t) unsigned char state[];
} task;

static atomic_int abandoned_tasks;

static void *run_task(void *argument)
{
    task *t = argument;
    t->status = t->step->run(t->state, &t->err);
    if (atomic_exchange(&t->progress, DONE) == RUNNING) return NULL;
    if (t->status == MDOT_OK && t->step->undo != NULL) t->step->undo(t->state);
    free(t);
    atomic_fetch_sub(&abandoned_tasks, 1);
    return NULL;
}

/* Detached, and deaf to the program's signals, which are for its own threads. */
static bool start_thread(task *t)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    sigset_t all;
    sigfillset(&all);
    pthread_attr_setsigmask_np(&attributes, &all);
#endif
    pthread_t thread;
    int result = pthread_create(&thread, &attributes, run_task, t);
    pthread_attr_destroy(&attributes);
    return result == 0;
}

/* By short sleeps: a step takes long or next to nothing, and neither locks nor clocks that are set can go wrong. */
static bool wait_for(const task *t, uint64_t limit_ns)
{
    enum { FIRST_NS = 20000, LONGEST_NS = 2000000 };
    uint64_t slept_ns = 0;
    for (uint64_t ns = FIRST_NS; atomic_load(&t->progress) != DONE; ns = ns < LONGEST_NS ? 2 * ns : LONGEST_NS) {
        if (slept_ns >= limit_ns) return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
        slept_ns += ns;
    }
    return true;
}

mdot_status rt_cuda_run_limited(const rt_cuda_step *step, void *state, size_t state_bytes, uint64_t limit_ms,
                                mdot_error *err)
{
    if (atomic_load(&abandoned_tasks) > 0)
        return mdot_fail(err, MDOT_DEVICE, "the CUDA driver has not answered an earlier call of this process");
    task *t = malloc(sizeof *t + state_bytes);
    if (t == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for asking the CUDA driver");
    *t = (task){.step = step, .progress = RUNNING};
    memcpy(t->state, state, state_bytes);
    if (!start_thread(t)) {
        free(t);
        return mdot_fail(err, MDOT_DEVICE, "no thread to be had for asking the CUDA driver");
    }
    if (!wait_for(t, limit_ms * 1000000)) {
        atomic_fetch_add(&abandoned_tasks, 1);
        if (atomic_exchange(&t->progress, ABANDONED) == RUNNING)
            return mdot_fail(err, MDOT_DEVICE, "the CUDA driver did not %s within %llu ms", step->what,
                             (unsigned long long)limit_ms);
        atomic_fetch_sub(&abandoned_tasks, 1); /* it was done after all */
    }
    mdot_status status = t->status;
    if (status == MDOT_OK)
        memcpy(state, t->state, state_bytes);
    else
        mdot_fail(err, status, "%s", t->err.message);
    free(t);
    return status;
}
