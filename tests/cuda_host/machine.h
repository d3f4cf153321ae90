/* machine.h — what the emulator's files share: threads, warps, blocks, and who waits for what. Internal to cuda_host.
 *
 *   fiber.c     a stack and a context switch for every CUDA thread
 *   machine.c   launches: the schedule, barriers, deadlock, faults
 *   happens_before.c     which accesses happen before which
 *   memory.c    buffers and shared memory: the check of every access
 *   warp.c      collectives of a warp: shuffles, ldmatrix, mma
 *   copy.c      cp.async
 *   atomic.c    atomics, releases and acquires
 *   hooks.c     the sanitizers' entry points, linked into every kernel
 *   device.h    what a kernel's source sees
 *   module.c    source to code, and code addresses to lines
 */
#ifndef CUDA_HOST_MACHINE_H
#define CUDA_HOST_MACHINE_H

#include "tests/cuda_host/cuda_host.h"
#include "tests/cuda_host/device_calls.h"

enum { CH_WARP = 32, CH_STACK_BYTES = 64 << 10 };

typedef uint32_t ch_time;

/* What a lane brings to a collective, and takes home. */
typedef struct ch_request {
    const char *what;
    int line;
    uint32_t mask;
    void *operand; /* the collective's own structure */
} ch_request;

typedef struct ch_copy { /* a cp.async on its way */
    void *to;
    const void *from;
    int bytes, source_bytes;
    int group; /* the thread's commit_group that it belongs to */
    int line;
} ch_copy;

typedef struct ch_thread {
    void *stack_pointer;
    char *stack; /* CH_STACK_BYTES */
    struct ch_warp *warp;
    unsigned index; /* in the grid */
    unsigned lane;
    ch_index position; /* threadIdx */
    bool exited;
    const char *waits_for; /* NULL: it doesn't wait */
    int waits_line;
    ch_request *request; /* in a collective */
    const void *polled;  /* the flag last loaded, and what was seen there */
    uint32_t polled_value;
    bool polls; /* waits for it to change */
    ch_copy *copies;
    int copy_count, copy_capacity, group;
    ch_time peer[CH_WARP]; /* happens_before.c: up to when the lanes of the warp are known */
    ch_time *
        acquired; /* happens_before.c: up to when all threads are known beyond the block's knowledge; NULL: nothing more */
    ch_time *seen, *fenced; /* happens_before.c: what relaxed reads saw; what was known at the last fence; or NULL */
} ch_thread;

typedef struct ch_warp {
    struct ch_block *block;
    ch_thread *threads; /* CH_WARP of them */
    uint32_t ready, live;
} ch_warp;

typedef struct ch_block {
    unsigned index;
    ch_index position; /* blockIdx */
    ch_warp *warps;
    int live, at_barrier, barrier_line;
    ch_thread *barrier_first;
    ch_time *known;        /* happens_before.c: up to when every thread of the grid is known to the whole block */
    ch_time *known_blocks; /* the least of it, by block */
    char *statics;         /* content of its static __shared__ variables while another block runs */
} ch_block;

typedef struct ch_machine {
    const cuda_host_launch *launch;
    cuda_host_memory *memory;
    cuda_host_report *report;
    void (*body)(void *user);
    void *user;
    ch_index grid, extent; /* gridDim, blockDim */
    int block_count, warps_per_block, threads_per_block, thread_count;
    ch_block *blocks;
    ch_warp *warps;
    ch_thread *threads;
    ch_thread *current; /* NULL outside a launch */
    ch_block *loaded;   /* whose static variables are in place */
    void *main_stack_pointer;
    char *stacks, *shared;
    int live;
    ch_time now;
    uint32_t random;
    int until_preemption;
    long polls;       /* loads of flags since somebody did anything else */
    int last_chances; /* times all pollers were woken since then */
} ch_machine;

extern ch_machine ch; /* one launch at a time */

/* ---- machine.c --------------------------------------------------------------------------------------------------- */

/* Ends the launch with a fault at a line of the source, or at the code address `pc` where the line is 0. */
_Noreturn void ch_fault(int line, const void *pc, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint32_t ch_random(void);
void ch_wait(const char *what, int line); /* until somebody wakes the current thread */
void ch_wake(ch_thread *t);
void ch_pause(void); /* lets others run */
void ch_enter(void); /* the first function on every fiber */
/* Counts a synchronisation that the current thread reached; false: the launch leaves it out. */
bool ch_reached(const char *what, int line);
const char *ch_place(const ch_thread *t); /* "block 1 thread 5", in one of a few static strings */

/* ---- fiber.c ----------------------------------------------------------------------------------------------------- */

void *ch_prepare_stack(char *stack);
void ch_switch(void **save, void *to);

/* ---- happens_before.c ----------------------------------------------------------------------------------------------------- */

bool ch_order_begin(void); /* false: memory ran out */
void ch_order_end(void);
bool ch_knows(const ch_thread *t, unsigned thread, ch_time when); /* what `thread` did at `when` happens before now */
bool ch_knows_warp(const ch_thread *t, unsigned warp, ch_time when);
bool ch_knows_block(const ch_thread *t, unsigned block, ch_time when);
void ch_order_block(ch_block *block);             /* all threads of a block meet */
void ch_order_warp(ch_warp *warp, uint32_t mask); /* lanes of a warp meet */
/* A flag is written; `joins`: in a read-modify-write, which keeps what others released there. */
void ch_order_write(ch_thread *t, const void *flag, bool releases, bool joins);
void ch_order_read(ch_thread *t, const void *flag, bool acquires);
void ch_order_fence(ch_thread *t);
/* Whether what `thread` did at `when` was released at a flag, by the last that wrote it. */
bool ch_was_released(const void *flag, unsigned thread, ch_time when);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

typedef enum ch_access_kind {
    CH_READ,
    CH_WRITE,
    CH_ATOMIC,     /* reads and writes, unordered with other atomics */
    CH_COPY_BEGIN, /* cp.async issues a write … */
    CH_COPY_END    /* … and the issuing thread waited for it */
} ch_access_kind;

void ch_check(const void *address, size_t bytes, ch_access_kind kind, int line, const void *pc);
bool ch_memory_begin(size_t shared_bytes);
void ch_check_published(void); /* reports what the host may read too early */
void ch_memory_end(void);      /* faults where a guard zone was written */
void *ch_shared(const ch_block *block);
void ch_load_statics(ch_block *block); /* puts the block's static __shared__ variables in place */

/* ---- module.c ---------------------------------------------------------------------------------------------------- */

bool ch_is_checked(void);               /* else only collectives and atomics show their accesses */
ch_section ch_static_shared(void);      /* of the launch's module */
bool ch_in_module(const void *address); /* constants and the like */
int ch_line_of(const void *pc);

#endif
