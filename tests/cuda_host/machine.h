/* machine.h — common to the emulator's files: threads, warps, blocks, and the reasons for waiting. Internal to
 * cuda_host.
 *
 *   fiber.c     a stack and a context switch for every CUDA thread
 *   machine.c   launches: the schedule, barriers, deadlock, faults
 *   happens_before.c     which accesses happen before which
 *   memory.c    buffers and shared memory: the check of every access
 *   warp.c      collectives of a warp: shuffles, ldmatrix, mma
 *   copy.c      cp.async
 *   atomic.c    atomics, releases and acquires
 *   hooks.c     the sanitizers' entry points, linked into every kernel
 *   device.h    the declarations that a kernel's source sees
 *   module.c    source to code, and code addresses to lines
 */
#pragma once

#include "tests/cuda_host/cuda_host.h"
#include "tests/cuda_host/device_calls.h"

enum { CH_WARP = 32, CH_STACK_BYTES = 64 << 10 };

typedef uint32_t ch_time;

/* A lane's operand in a collective, and the result. */
typedef struct ch_request {
    const char *what;
    int line;
    uint32_t mask;
    void *operand; /* a structure of the collective */
} ch_request;

typedef struct ch_copy { /* a pending cp.async */
    void *to;
    const void *from;
    int bytes, source_bytes;
    int group; /* number of commit_group in the thread */
    int line;
} ch_copy;

typedef struct ch_thread {
    void *stack_pointer;
    char *stack; /* CH_STACK_BYTES bytes */
    struct ch_warp *warp;
    unsigned index; /* linear index in the grid */
    unsigned lane;
    ch_index position; /* threadIdx */
    bool exited;
    const char *waits_for; /* NULL = the thread is running or ready */
    int waits_line;
    ch_request *request; /* the current collective */
    const void *polled;  /* the flag of the last load, and the value */
    uint32_t polled_value;
    bool polls; /* the thread waits for a change of the flag */
    ch_copy *copies;
    int copy_count, copy_capacity, group;
    ch_time peer[CH_WARP]; /* happens_before.c: known time of each lane in the warp */
    ch_time *
        acquired; /* happens_before.c: the time up to which each thread is known beyond the block's knowledge; NULL = the
                        * block's knowledge only */
    ch_time *seen, *fenced; /* happens_before.c: knowledge from relaxed reads; knowledge at the last fence; or NULL */
} ch_thread;

typedef struct ch_warp {
    struct ch_block *block;
    ch_thread *threads; /* CH_WARP threads */
    uint32_t ready, live;
} ch_warp;

typedef struct ch_block {
    unsigned index;
    ch_index position; /* blockIdx */
    ch_warp *warps;
    int live, at_barrier, barrier_line;
    ch_thread *barrier_first;
    int at_cluster_barrier, cluster_barrier_line; /* of the cluster, in its first block */
    ch_time *known;        /* happens_before.c: known time of each grid thread in the whole block */
    ch_time *known_blocks; /* minimum of known, for each block */
    char *statics;         /* content of the block's static __shared__ variables while another block runs */
} ch_block;

typedef struct ch_machine {
    const cuda_host_launch *launch;
    cuda_host_memory *memory;
    cuda_host_report *report;
    void (*body)(void *user);
    void *user;
    ch_index grid, extent; /* gridDim, blockDim */
    int block_count, warps_per_block, threads_per_block, thread_count, blocks_per_cluster;
    ch_block *blocks;
    ch_warp *warps;
    ch_thread *threads;
    ch_thread *current; /* NULL outside a launch */
    ch_block *loaded;   /* the block whose static variables are in place */
    void *main_stack_pointer;
    char *stacks, *shared;
    int live;
    ch_time now;
    uint32_t random;
    int until_preemption;
    long polls;       /* flag loads since the last other progress */
    int last_chances; /* how often all pollers were woken since then */
} ch_machine;

extern ch_machine ch; /* only one launch runs at a time */

/* ---- machine.c --------------------------------------------------------------------------------------------------- */

/* Ends the launch with a fault at a line of the source. If line is 0, the code address `pc` gives the line. */
_Noreturn void ch_fault(int line, const void *pc, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint32_t ch_random(void);
void ch_wait(const char *what, int line); /* waits until another thread wakes the current one */
void ch_wake(ch_thread *t);
void ch_pause(void); /* lets other threads run */
void ch_enter(void); /* the first function on every fiber */
/* Counts a synchronisation that the current thread has reached. Returns false if the launch leaves it out. */
bool ch_reached(const char *what, int line);
ch_block *ch_cluster_of(const ch_block *block); /* the first block of the cluster */
const char *ch_place(const ch_thread *t); /* returns for example "block 1 thread 5", in one of a few static strings */

/* ---- fiber.c ----------------------------------------------------------------------------------------------------- */

void *ch_prepare_stack(char *stack);
void ch_switch(void **save, void *to);

/* ---- happens_before.c -------------------------------------------------------------------------------------------- */

bool ch_order_begin(void); /* returns false if memory ran out */
void ch_order_end(void);
bool ch_knows(const ch_thread *t, unsigned thread, ch_time when); /* whether the actions of `thread` at `when` happen
                                                                   * before now */
bool ch_knows_warp(const ch_thread *t, unsigned warp, ch_time when);
bool ch_knows_block(const ch_thread *t, unsigned block, ch_time when);
void ch_order_block(ch_block *block);             /* all threads of a block synchronise */
void ch_order_cluster(ch_block *first);           /* all threads of a cluster synchronise */
void ch_order_warp(ch_warp *warp, uint32_t mask); /* lanes of a warp synchronise */
/* Records a write to a flag. `joins` marks a read-modify-write, which keeps the knowledge released there by others. */
void ch_order_write(ch_thread *t, const void *flag, bool releases, bool joins);
void ch_order_read(ch_thread *t, const void *flag, bool acquires);
void ch_order_fence(ch_thread *t);
/* Whether the flag's last writer released the actions of `thread` at `when`. */
bool ch_was_released(const void *flag, unsigned thread, ch_time when);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

typedef enum ch_access_kind {
    CH_READ,
    CH_WRITE,
    CH_ATOMIC,     /* reads and writes, unordered with respect to other atomics */
    CH_COPY_BEGIN, /* cp.async issues a write */
    CH_COPY_END    /* the issuing thread has waited for the copy */
} ch_access_kind;

void ch_check(const void *address, size_t bytes, ch_access_kind kind, int line, const void *pc);
bool ch_memory_begin(size_t shared_bytes);
void ch_check_published(void); /* reports memory that the host may read too early */
void ch_memory_end(void);      /* faults if a guard zone was overwritten */
void *ch_shared(const ch_block *block);
bool ch_is_shared(const ch_block *block, const void *address); /* in the block's dynamic shared memory */
void ch_load_statics(ch_block *block); /* puts the block's static __shared__ variables in place */

/* ---- module.c ---------------------------------------------------------------------------------------------------- */

bool ch_is_checked(void);               /* otherwise only collectives and atomics report their accesses */
ch_section ch_static_shared(void);      /* the section of the launched module */
bool ch_in_module(const void *address); /* for example constants */
int ch_line_of(const void *pc);
