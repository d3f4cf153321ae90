/* cuda_thread.c — threads for driver calls, one for each GPU of a predictor and one for each context on it, so that a
 * caller waits for the driver at most a time limit.
 *
 * A thread blocked in the driver cannot be ended, so it is abandoned. By then all its data belongs to it. This data is
 * in libc's memory, because a caller's memory functions end with the predictor. If the thread returns later, it
 * releases its object. Until then the driver gets no new requests. Therefore a program that opens predictors all day
 * abandons one thread in total, rather than one each time.
 *
 *   turn   the side that acts next: the caller writes a step and hands over; the thread answers and hands back. The
 *          waiting side polls for a while, because the other one usually answers soon. Then it sleeps on the word
 *          (futex) */
#include "base/spin.h"
#include "runtime/cuda/cuda_device.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About 0.1 to 0.4 ms. A thread stays awake if the next launch follows right after its answer. The awaited thread may
 * need this core. */
enum { PAUSES_TO_A_YIELD = 64, PAUSES_TO_SLEEP = 8192 };

/* Values of `turn`. */
enum { OF_CALLER, OF_THREAD, LOST };

struct rt_cuda_thread {
    rt_cuda *cuda;
    rt_cuda_owner owner;
    pid_t process;
    atomic_uint holders; /* the thread and its starter; the last one frees */
    atomic_uint turn;
    atomic_uint sleepers;
    const rt_cuda_step *step; /* NULL: end the thread */
    mdot_status status;
    mdot_error err;
};

static atomic_int lost_threads;

static mdot_status refuse(mdot_error *err)
{
    return mdot_fail(err, MDOT_DEVICE, "an earlier call of this process still waits for the CUDA driver");
}

static bool look(rt_cuda_thread *t, unsigned turn)
{
    for (int pauses = 1; pauses <= PAUSES_TO_SLEEP; pauses++) {
        if (atomic_load_explicit(&t->turn, memory_order_acquire) != turn) return true;
        bs_spin_pause();
        if (pauses % PAUSES_TO_A_YIELD == 0) sched_yield();
    }
    return false;
}

/* If the word changes before the system has put the thread to sleep, the futex call returns at once. */
static void sleep_on(rt_cuda_thread *t, unsigned turn, const struct timespec *limit)
{
    atomic_fetch_add(&t->sleepers, 1);
    if (atomic_load(&t->turn) == turn) syscall(SYS_futex, &t->turn, FUTEX_WAIT_PRIVATE, turn, limit, NULL, 0);
    atomic_fetch_sub(&t->sleepers, 1);
}

/* The word changes before the sleepers are read, so that every sleeper is woken. Returns false if it was not `from`. */
static bool hand_over(rt_cuda_thread *t, unsigned state, unsigned new_state)
{
    if (!atomic_compare_exchange_strong(&t->turn, &state, new_state)) return false;
    if (atomic_load(&t->sleepers) > 0) syscall(SYS_futex, &t->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return true;
}

/* Sleeps in short slices: a signal costs at most the rest of a slice, and adjustable clocks are avoided. Returns false
 * beyond the limit, or in a child of the process with the thread. */
static bool wait_for_answer(rt_cuda_thread *t, uint64_t limit_ms)
{
    enum { SLICE_MS = 2 };
    const struct timespec slice = {.tv_nsec = SLICE_MS * 1000000};
    if (look(t, OF_THREAD)) return true;
    for (uint64_t slept_ms = 0; slept_ms < limit_ms && getpid() == t->process; slept_ms += SLICE_MS) {
        sleep_on(t, OF_THREAD, &slice);
        if (atomic_load(&t->turn) != OF_THREAD) return true;
    }
    return false;
}

/* Returns false if the thread has answered after all. */
static bool abandon(rt_cuda_thread *t)
{
    atomic_fetch_add(&lost_threads, 1);
    if (hand_over(t, OF_THREAD, LOST)) return true;
    atomic_fetch_sub(&lost_threads, 1);
    return false;
}

static void let_go(rt_cuda_thread *t)
{
    if (atomic_fetch_sub(&t->holders, 1) > 1) return;
    if (t->owner.free != NULL) t->owner.free(t->owner.object);
    free(t);
}

/* Returns false for the end. A step runs even if its caller has stopped waiting, because the caller may depend on the
 * effect. */
static bool wait_for_step(rt_cuda_thread *t)
{
    while (!look(t, OF_CALLER) && atomic_load(&t->turn) == OF_CALLER) sleep_on(t, OF_CALLER, NULL);
    return t->step != NULL;
}

static void *serve(void *argument)
{
    rt_cuda_thread *t = argument;
    do {
        if (!wait_for_step(t)) break;
        t->status = t->step->run(t->owner.object, &t->err);
    } while (hand_over(t, OF_THREAD, OF_CALLER));
    if (t->owner.end != NULL) t->owner.end(t->owner.object);
    rt_cuda_release(t->cuda);
    if (!hand_over(t, OF_THREAD, OF_CALLER)) atomic_fetch_sub(&lost_threads, 1);
    let_go(t);
    return NULL;
}

/* Keeps this library loaded, because an abandoned thread still needs its code if the program unloads the library. */
static void keep_code(void)
{
    Dl_info info;
    if (dladdr(&lost_threads, &info) != 0 && info.dli_fname != NULL) {
        void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
        if (library != NULL) dlclose(library);
    }
}

/* Detached and with all signals blocked, because the program's own threads handle them. */
static bool start(rt_cuda_thread *t)
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
    int result = pthread_create(&thread, &attributes, serve, t);
    pthread_attr_destroy(&attributes);
    return result == 0;
}

mdot_status rt_cuda_thread_start(rt_cuda *cuda, rt_cuda_owner owner, rt_cuda_thread **out_thread, mdot_error *err)
{
    if (atomic_load(&lost_threads) > 0 || atomic_load(&cuda->lost_threads) > 0) return refuse(err);
    rt_cuda_thread *t = calloc(1, sizeof *t);
    if (t == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    t->cuda = cuda;
    t->owner = owner;
    t->process = getpid();
    atomic_init(&t->holders, 2);
    keep_code();
    if (!start(t)) {
        free(t);
        return mdot_fail(err, MDOT_DEVICE, "starting a thread for the CUDA driver failed");
    }
    rt_cuda_keep(cuda);
    *out_thread = t;
    return MDOT_OK;
}

mdot_status rt_cuda_ask(rt_cuda_thread *t, const rt_cuda_step *step, uint64_t limit_ms, mdot_error *err)
{
    rt_cuda *cuda = t->cuda;
    if (atomic_load(&cuda->lost_threads) > 0) return refuse(err);
    t->step = step;
    hand_over(t, OF_CALLER, OF_THREAD);
    if (!wait_for_answer(t, limit_ms)) {
        atomic_fetch_add(&cuda->lost_threads, 1); /* set before the thread is abandoned, because the thread may then
                                                   * close the GPU */
        if (abandon(t))
            return mdot_fail(err, MDOT_DEVICE, "the CUDA driver did not %s within %llu ms", step->what,
                             (unsigned long long)limit_ms);
        atomic_fetch_sub(&cuda->lost_threads, 1);
    }
    return t->status == MDOT_OK ? MDOT_OK : mdot_fail(err, t->status, "%s", t->err.message);
}

/* If another of the GPU's threads is lost, this one is likely to wait for it. Therefore the limit becomes 0. */
void rt_cuda_thread_end(rt_cuda_thread *t, uint64_t limit_ms)
{
    if (atomic_load(&t->turn) != LOST) {
        if (atomic_load(&t->cuda->lost_threads) > 0) limit_ms = 0;
        t->step = NULL;
        hand_over(t, OF_CALLER, OF_THREAD);
        if (!wait_for_answer(t, limit_ms)) abandon(t);
    }
    let_go(t);
}
