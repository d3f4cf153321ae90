/* workers.c — threads that share a call. Each split kernel is a step with one slice per worker. A slice goes to the
 * first worker that takes it.
 *
 * The leader of a run is the caller if the threads belong to the context. It opens steps one after the other, takes
 * slices like the others, and continues when all slices of a step are done. It never waits for a missing worker: an
 * unscheduled thread costs only its help. Results are independent of the worker behind a slice (mdot_abi_call).
 *
 *   ticket   the step's number and, in the low bits, the number of its slices already taken. Taking one is a single
 *            compare-and-swap. After that the step is unchanged until the slice is done
 *   epoch    odd during a run. The context's own workers sleep on it between runs (futex)
 *
 * A child of fork has the context, between two runs as its parent left it, but lacks the threads. There the caller
 * takes all slices, and destroying the workers joins no thread. */
#include "base/spin.h"
#include "runtime/core/run.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    LEAST_LENGTH = 256,      /* below this length, waking threads costs more than they save */
    SLICE_BITS = 16,         /* low bits of a ticket */
    PAUSES_TO_A_YIELD = 512, /* about ten microseconds; the awaited thread may need this core */
    PAUSES_TO_SLEEP = 2048,  /* in consecutive runs, workers are still awake */
    LINE_BYTES = 64
};

typedef struct step {
    mdot_abi_function function;
    mdot_abi_call call;
} step;

typedef struct member {
    rt_workers *team;
    uint32_t number;
    pthread_t thread;
} member;

struct rt_workers {
    uint32_t count, started; /* number of workers; number of own threads running */
    pid_t process;           /* process that owns the threads */
    mdot_parallel_for_fn parallel_for;
    void *user;
    step step;
    const rt_code *code; /* code of the current run */
    const mdot_abi_call *calls;
    size_t call_count;
    _Alignas(LINE_BYTES) atomic_ullong ticket;
    _Alignas(LINE_BYTES) atomic_uint done; /* finished slices of the step */
    _Alignas(LINE_BYTES) atomic_uint epoch;
    atomic_uint sleepers;
    atomic_bool ends, has_leader;
    member members[RT_MOST_WORKERS];
};

static void pause_once(unsigned *pauses)
{
    bs_spin_pause();
    if (++*pauses % PAUSES_TO_A_YIELD == 0) sched_yield();
}

static bool take_slice(rt_workers *w, uint32_t *out_slice)
{
    unsigned long long mask = (1u << SLICE_BITS) - 1, ticket = atomic_load_explicit(&w->ticket, memory_order_acquire);
    while ((ticket & mask) < w->count)
        if (atomic_compare_exchange_weak_explicit(&w->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            *out_slice = (uint32_t)(ticket & mask);
            return true;
        }
    return false;
}

static void run_slice(rt_workers *w, uint32_t slice, uint32_t worker)
{
    mdot_abi_call call = w->step.call;
    call.share_begin = (int64_t)slice * MDOT_ABI_WHOLE_SLICE / w->count;
    call.share_end = (int64_t)(slice + 1) * MDOT_ABI_WHOLE_SLICE / w->count;
    call.worker = worker;
    w->step.function(&call);
    atomic_fetch_add_explicit(&w->done, 1, memory_order_release);
}

static void run_step(rt_workers *w, uint32_t worker)
{
    atomic_store_explicit(&w->done, 0, memory_order_relaxed);
    unsigned long long number = atomic_load_explicit(&w->ticket, memory_order_relaxed) >> SLICE_BITS;
    atomic_store_explicit(&w->ticket, (number + 1) << SLICE_BITS, memory_order_release);
    uint32_t slice;
    while (take_slice(w, &slice)) run_slice(w, slice, worker);
    unsigned pauses = 0;
    while (atomic_load_explicit(&w->done, memory_order_acquire) < w->count) pause_once(&pauses);
}

/* The leader alone runs a step with unsplit kernels. */
static void lead_call(rt_workers *w, const rt_code *code, const mdot_abi_call *call, uint32_t worker)
{
    for (uint32_t begin = (uint32_t)call->kernel_begin, end; begin < call->kernel_end; begin = end) {
        end = rt_step_end(code->kernels, (uint32_t)call->kernel_end, begin);
        w->step = (step){code->function, *call};
        w->step.call.kernel_begin = begin;
        w->step.call.kernel_end = end;
        if (code->kernels[begin].is_split != 0) {
            run_step(w, worker);
        } else {
            w->step.call.share_end = MDOT_ABI_WHOLE_SLICE;
            w->step.call.worker = worker;
            code->function(&w->step.call);
        }
    }
}

static void lead(rt_workers *w, uint32_t worker)
{
    for (size_t i = 0; i < w->call_count; i++) lead_call(w, w->code, &w->calls[i], worker);
    atomic_fetch_add(&w->epoch, 1); /* even: the run is over */
}

/* Takes slices until the run of this epoch is over. */
static void help(rt_workers *w, unsigned epoch, uint32_t worker)
{
    unsigned pauses = 0;
    uint32_t slice;
    while (atomic_load_explicit(&w->epoch, memory_order_acquire) == epoch) {
        if (take_slice(w, &slice)) {
            run_slice(w, slice, worker);
            pauses = 0;
        } else {
            pause_once(&pauses);
        }
    }
}

/* If the word changes before the system has put the thread to sleep, the futex call returns at once. */
static void sleep_in(rt_workers *w, unsigned epoch)
{
    for (int pauses = 0; pauses < PAUSES_TO_SLEEP; pauses++) {
        if (atomic_load_explicit(&w->epoch, memory_order_acquire) != epoch) return;
        bs_spin_pause();
    }
    atomic_fetch_add(&w->sleepers, 1);
    if (atomic_load(&w->epoch) == epoch) syscall(SYS_futex, &w->epoch, FUTEX_WAIT_PRIVATE, epoch, NULL, NULL, 0);
    atomic_fetch_sub(&w->sleepers, 1);
}

/* Begins the next epoch. The word changes before the sleepers are counted, so that every sleeper is woken. */
static void wake(rt_workers *w)
{
    atomic_fetch_add(&w->epoch, 1);
    if (atomic_load(&w->sleepers) > 0) syscall(SYS_futex, &w->epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *work(void *argument)
{
    const member *self = argument;
    rt_workers *w = self->team;
    for (;;) {
        unsigned epoch = atomic_load_explicit(&w->epoch, memory_order_acquire);
        if (atomic_load(&w->ends)) return NULL;
        if (epoch % 2 == 1)
            help(w, epoch, self->number);
        else
            sleep_in(w, epoch);
    }
}

/* Starts threads until one fails. */
static void start_all(rt_workers *w, const pthread_attr_t *attributes)
{
    for (; w->started < w->count; w->started++) {
        member *m = &w->members[w->started];
        *m = (member){.team = w, .number = w->started};
        if (pthread_create(&m->thread, attributes, work, m) != 0) return;
    }
}

/* Blocks all signals in the threads, because the program's own threads handle them. */
static mdot_status start_threads(rt_workers *w, mdot_error *err)
{
    pthread_attr_t attributes;
    sigset_t signals;
    sigfillset(&signals);
    w->started = 1;
    if (pthread_attr_init(&attributes) == 0) {
        if (pthread_attr_setsigmask_np(&attributes, &signals) == 0) start_all(w, &attributes);
        pthread_attr_destroy(&attributes);
    }
    if (w->started == w->count) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_MEMORY, "only %u of %u threads of a context started", w->started, w->count);
}

/* The first thread to arrive leads. If the leader were fixed in advance, the others might wait for a thread that
 * runs only after them. */
static void take_part(void *argument, uint32_t i)
{
    rt_workers *w = argument;
    unsigned epoch = atomic_load(&w->epoch);
    if (i >= w->count || epoch % 2 == 0) return;
    if (atomic_exchange(&w->has_leader, true))
        help(w, epoch, i);
    else
        lead(w, i);
}

void rt_workers_run(rt_workers *w, const rt_code *code, const mdot_abi_call *calls, size_t count)
{
    w->code = code;
    w->calls = calls;
    w->call_count = count;
    if (w->parallel_for == NULL) {
        wake(w);
        lead(w, 0);
        return;
    }
    atomic_store(&w->has_leader, false);
    atomic_fetch_add(&w->epoch, 1);
    w->parallel_for(w->user, take_part, w, w->count);
    if (!atomic_load(&w->has_leader)) take_part(w, 0); /* the callback made no calls */
}

bool rt_workers_split(const rt_workers *workers, int64_t length) { return workers != NULL && length >= LEAST_LENGTH; }

mdot_status rt_workers_create(const rt_allocator *allocator, const mdot_context_options *options,
                              rt_workers **out_workers, mdot_error *err)
{
    rt_workers *w = rt_alloc(allocator, sizeof *w);
    if (w == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    w->count = options->threads;
    w->process = getpid();
    w->parallel_for = options->parallel_for;
    w->user = options->user;
    atomic_store(&w->ticket, (unsigned long long)w->count); /* all slices are taken */
    mdot_status status = w->parallel_for == NULL ? start_threads(w, err) : MDOT_OK;
    if (status != MDOT_OK) {
        rt_workers_destroy(allocator, w);
        return status;
    }
    *out_workers = w;
    return MDOT_OK;
}

static void end_threads(rt_workers *w)
{
    atomic_store(&w->ends, true);
    atomic_fetch_add(&w->epoch, 2); /* still even, so that workers do not start to help */
    syscall(SYS_futex, &w->epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    for (uint32_t i = 1; i < w->started; i++) pthread_join(w->members[i].thread, NULL);
}

void rt_workers_destroy(const rt_allocator *allocator, rt_workers *w)
{
    if (w == NULL) return;
    if (w->process == getpid()) end_threads(w); /* a child of fork lacks the threads, and their ids are invalid there */
    rt_free(allocator, w);
}
