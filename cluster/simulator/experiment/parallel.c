/* parallel.c — processes take tasks from a counter in shared memory and write results there. */
#include "simulator/experiment/command_line.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct outcome {
    mdot_status status;
    mdot_error err;
    bool is_done;
} outcome;

typedef struct shared {
    atomic_size_t next, done;
    outcome outcomes[];
} shared;

size_t ex_core_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void ex_parallel_free(void *results, size_t count, size_t size)
{
    if (results != NULL) munmap(results, count * size + 1);
}

/* Waits for one child; returns the number of remaining children. */
static size_t wait_for_one(pid_t *children, size_t count)
{
    pid_t ended;
    do ended = waitpid(children[count - 1], NULL, 0);
    while (ended < 0 && errno == EINTR);
    return count - 1;
}

mdot_status ex_parallel(size_t count, size_t size, size_t workers,
                        mdot_status (*run)(void *user, size_t task, void *out_result, mdot_error *err), void *user,
                        void (*progress)(size_t done, size_t total), void **out_results, mdot_error *err)
{
    size_t bytes = sizeof(shared) + count * sizeof(outcome), started = 0;
    workers = workers < 1 ? 1 : workers > count ? count : workers;
    char *results = map(count * size + 1);
    shared *common = map(bytes);
    pid_t *children = calloc(workers + 1, sizeof *children);
    mdot_status status = MDOT_OK;
    if (results == NULL || common == NULL || children == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (; status == MDOT_OK && started < workers; started++) {
        children[started] = fork();
        if (children[started] < 0) {
            status = mdot_fail(err, MDOT_IO, "cannot start a process: %s", strerror(errno));
            break;
        }
        if (children[started] > 0) continue;
        for (size_t task; (task = atomic_fetch_add(&common->next, 1)) < count;) {
            outcome *o = &common->outcomes[task];
            o->status = run(user, task, results + task * size, &o->err);
            o->is_done = true;
            size_t done = atomic_fetch_add(&common->done, 1) + 1;
            if (progress != NULL) progress(done, count);
        }
        _exit(0);
    }
    while (started > 0) started = wait_for_one(children, started);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        if (!common->outcomes[i].is_done)
            status = mdot_fail(err, MDOT_IO, "a process ended before its simulation did");
        else if (common->outcomes[i].status != MDOT_OK)
            status = mdot_fail(err, common->outcomes[i].status, "%s", common->outcomes[i].err.message);
    }
    free(children);
    if (common != NULL) munmap(common, bytes);
    if (status == MDOT_OK)
        *out_results = results;
    else
        ex_parallel_free(results, count, size);
    return status;
}
