/* machine.c — a launch: every thread of every block is a fiber. All are resident and run in an order that the seed
 * decides. A thread runs until it waits (for a barrier, a collective, or a flag that stays the same). From time to
 * time it is pre-empted between two accesses. A thread that wakes others only marks them ready. If threads are left
 * and all of them wait, they are deadlocked. A fault abandons all fibers, because kernels need no cleaning up. */
#include "tests/cuda_host/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* MAX_POLLS flag loads in sequence without any other progress count as a livelock, in which a thread polls several
 * flags in turn. */
enum { MAX_POLLS = 1 << 20, PREEMPTION_INTERVAL = 4096 };

ch_machine ch;

uint32_t ch_random(void)
{
    ch.random ^= ch.random << 13; /* xorshift32, Marsaglia 2003 */
    ch.random ^= ch.random >> 17;
    ch.random ^= ch.random << 5;
    return ch.random;
}

const char *ch_place(const ch_thread *t)
{
    static char texts[4][48];
    static unsigned next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "block %u thread %u", t->warp->block->index,
             t->index % (unsigned)ch.threads_per_block);
    return text;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

void ch_fault(int line, const void *pc, const char *format, ...)
{
    cuda_host_report *r = ch.report;
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    ch_thread *t = ch.current;
    if (!line && pc) line = ch_line_of(pc);
    r->faulted = true;
    r->line = line;
    r->block = t->warp->block->index;
    r->thread = t->index % (unsigned)ch.threads_per_block;
    snprintf(r->message, sizeof r->message, "line %d, %s: %s", line, ch_place(t), what);
    ch_switch(&t->stack_pointer, ch.main_stack_pointer);
    abort(); /* this fiber is never resumed */
}

_Noreturn static void report_deadlock(void)
{
    char text[256] = "";
    size_t used = 0;
    const char *last = NULL;
    int last_line = 0;
    for (int k = 0; k < ch.thread_count && used < sizeof text - 80; k++) {
        const ch_thread *t = &ch.threads[k];
        if (t->exited || (t->waits_for == last && t->waits_line == last_line)) continue;
        last = t->waits_for;
        last_line = t->waits_line;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s waits for %s on line %d", used ? "; " : "",
                                 ch_place(t), last ? last : "nothing", last_line);
    }
    ch_fault(last_line, NULL, "deadlock: %s", text);
}

/* ---- Schedule ---------------------------------------------------------------------------------------------------- */

static ch_thread *ready_in_warp(const ch_warp *w)
{
    if (!w->ready) return NULL;
    unsigned turn = ch_random() % CH_WARP;
    uint32_t turned = turn ? w->ready >> turn | w->ready << (CH_WARP - turn) : w->ready;
    return &w->threads[((unsigned)__builtin_ctz(turned) + turn) % CH_WARP];
}

static ch_thread *ready_in_block(const ch_block *b)
{
    unsigned count = (unsigned)ch.warps_per_block, first = ch_random() % count;
    for (unsigned k = 0; k < count; k++) {
        const ch_warp *w = &b->warps[(first + k) % count];
        if (w->ready) return ready_in_warp(w);
    }
    return NULL;
}

/* Prefers the same warp, then the same block. This keeps switches between blocks rare, because they exchange the
 * static variables. */
static ch_thread *choose(void)
{
    const ch_warp *warp = ch.current->warp;
    ch_thread *t = ready_in_warp(warp);
    if (!t) t = ready_in_block(warp->block);
    unsigned count = (unsigned)ch.block_count, first = ch_random() % count;
    for (unsigned k = 0; k < count && !t; k++) t = ready_in_block(&ch.blocks[(first + k) % count]);
    return t;
}

static void resume(ch_thread *next)
{
    ch_thread *self = ch.current;
    if (next == self) return;
    if (next->warp->block != ch.loaded) ch_load_statics(next->warp->block);
    ch.current = next;
    ch_switch(&self->stack_pointer, next->stack_pointer);
}

/* A thread that loads a flag again may accept an earlier value. Therefore pollers are woken once more. */
static ch_thread *last_chance(void)
{
    if (ch.last_chances++) report_deadlock();
    for (int k = 0; k < ch.thread_count; k++)
        if (ch.threads[k].polls) ch.threads[k].warp->ready |= 1u << ch.threads[k].lane;
    ch_thread *next = choose();
    if (!next) report_deadlock();
    return next;
}

static void go_on(void)
{
    ch_thread *next = choose();
    resume(next ? next : last_chance());
}

static void note_progress(void)
{
    ch.polls = 0;
    ch.last_chances = 0;
}

void ch_wait(const char *what, int line)
{
    ch_thread *self = ch.current;
    self->waits_for = what;
    self->waits_line = line;
    self->warp->ready &= ~(1u << self->lane);
    if (!self->polls) note_progress();
    go_on();
    self->waits_for = NULL;
}

void ch_wake(ch_thread *t)
{
    t->warp->ready |= 1u << t->lane;
    note_progress();
}

void ch_pause(void)
{
    ch_block *any = &ch.blocks[ch_random() % (unsigned)ch.block_count];
    ch_thread *next = ready_in_block(any);
    if (next) resume(next);
}

static void leave(void)
{
    ch_thread *self = ch.current;
    note_progress();
    self->exited = true;
    self->warp->ready &= ~(1u << self->lane);
    self->warp->live &= ~(1u << self->lane);
    self->warp->block->live--;
    if (self->warp->block->at_barrier)
        ch_fault(self->warp->block->barrier_line, NULL, "exits while %s waits at __syncthreads",
                 ch_place(self->warp->block->barrier_first));
    if (ch_cluster_of(self->warp->block)->at_cluster_barrier)
        ch_fault(ch_cluster_of(self->warp->block)->cluster_barrier_line, NULL,
                 "exits while others wait at cluster_barrier");
    if (--ch.live == 0) {
        ch_switch(&self->stack_pointer, ch.main_stack_pointer);
    } else {
        go_on();
    }
}

void ch_enter(void)
{
    ch.body(ch.user);
    leave();
    abort(); /* a finished thread is never resumed */
}

/* ---- Synchronisations -------------------------------------------------------------------------------------------- */

bool ch_reached(const char *what, int line)
{
    cuda_host_report *r = ch.report;
    int k = 0;
    while (k < r->site_count && !(r->sites[k].line == line && !strcmp(r->sites[k].what, what))) k++;
    if (k == CUDA_HOST_MAX_SITES) ch_fault(line, NULL, "more than %d synchronisation sites", CUDA_HOST_MAX_SITES);
    if (k == r->site_count) r->sites[r->site_count++] = (cuda_host_site){.what = what, .line = line};
    r->sites[k].count++;
    return !ch.launch->skip || ch.launch->skip_line != line || strcmp(ch.launch->skip, what) != 0;
}

void ch_barrier(int line)
{
    ch_thread *self = ch.current;
    ch_block *b = self->warp->block;
    if (b->at_barrier == 0) {
        b->barrier_first = self;
        b->barrier_line = line;
    }
    if (b->barrier_line != line)
        ch_fault(line, NULL, "__syncthreads while %s is at that of line %d", ch_place(b->barrier_first),
                 b->barrier_line);
    if (b->live < ch.threads_per_block)
        ch_fault(line, NULL, "__syncthreads after %d threads of the block exited", ch.threads_per_block - b->live);
    if (++b->at_barrier < ch.threads_per_block) {
        ch_wait("__syncthreads", line);
        return;
    }
    b->at_barrier = 0;
    ch_order_block(b);
    for (int w = 0; w < ch.warps_per_block; w++)
        for (int l = 0; l < CH_WARP; l++) ch_wake(&b->warps[w].threads[l]);
}

void ch_syncthreads(int line)
{
    if (ch_reached("__syncthreads", line)) ch_barrier(line);
}

ch_block *ch_cluster_of(const ch_block *block)
{
    return &ch.blocks[block->index / (unsigned)ch.blocks_per_cluster * (unsigned)ch.blocks_per_cluster];
}

void ch_cluster_barrier(int line)
{
    if (!ch_reached("cluster_barrier", line)) return;
    ch_block *first = ch_cluster_of(ch.current->warp->block);
    if (first->at_cluster_barrier == 0) first->cluster_barrier_line = line;
    if (first->cluster_barrier_line != line)
        ch_fault(line, NULL, "cluster_barrier while others are at that of line %d", first->cluster_barrier_line);
    for (int b = 0; b < ch.blocks_per_cluster; b++)
        if (first[b].live < ch.threads_per_block)
            ch_fault(line, NULL, "cluster_barrier after threads of block %u exited", first[b].index);
    if (++first->at_cluster_barrier < ch.blocks_per_cluster * ch.threads_per_block) {
        ch_wait("cluster_barrier", line);
        return;
    }
    first->at_cluster_barrier = 0;
    ch_order_cluster(first);
    for (int k = 0; k < ch.blocks_per_cluster * ch.threads_per_block; k++)
        ch_wake(&first->warps[k / CH_WARP].threads[k % CH_WARP]);
}

int ch_cluster_rank(void) { return (int)(ch.current->warp->block->index % (unsigned)ch.blocks_per_cluster); }

void *ch_in_block(void *address, int block, int line)
{
    const ch_block *own = ch.current->warp->block;
    if (!ch_is_shared(own, address)) ch_fault(line, NULL, "in_block of an address outside the block's shared memory");
    if (block < 0 || block >= ch.blocks_per_cluster) ch_fault(line, NULL, "in_block of block %d of the cluster", block);
    return (char *)ch_shared(ch_cluster_of(own) + block) + ((char *)address - (char *)ch_shared(own));
}

void ch_poll(const void *flag, uint32_t value, const char *what, int line)
{
    ch_thread *self = ch.current;
    bool unchanged = self->polled == flag && self->polled_value == value;
    self->polled = flag;
    self->polled_value = value;
    if (++ch.polls > MAX_POLLS) ch_fault(line, NULL, "livelock: flags are polled and nothing else happens");
    if (!unchanged) return;
    self->polls = true;
    ch_wait(what, line);
    self->polls = false;
}

void ch_wake_pollers(const void *flag)
{
    for (int k = 0; k < ch.thread_count; k++)
        if (ch.threads[k].polls && ch.threads[k].polled == flag) ch_wake(&ch.threads[k]);
}

void ch_access(const void *address, size_t bytes, int writes, const void *pc)
{
    ch_thread *self = ch.current;
    if (!self || (size_t)((const char *)address - self->stack) < CH_STACK_BYTES) return;
    ch_check(address, bytes, writes ? CH_WRITE : CH_READ, 0, pc);
    if (--ch.until_preemption > 0) return;
    ch.until_preemption = (int)(ch_random() % PREEMPTION_INTERVAL) + 1;
    ch_pause();
}

void ch_misuse(const char *what, const void *pc)
{
    if (ch.current) ch_fault(0, pc, "%s", what);
}

ch_index ch_position(int which)
{
    switch (which) {
    case CH_THREAD_INDEX: return ch.current->position;
    case CH_BLOCK_INDEX: return ch.current->warp->block->position;
    case CH_BLOCK_EXTENT: return ch.extent;
    default: return ch.grid;
    }
}

void *ch_dynamic_shared(void) { return ch_shared(ch.current->warp->block); }

/* ---- Launch ------------------------------------------------------------------------------------------------------ */

static ch_index unlinear(unsigned linear, ch_index extent)
{
    return (ch_index){linear % extent.x, linear / extent.x % extent.y, linear / extent.x / extent.y};
}

/* 0 counts as 1. */
static ch_index extent_of(const unsigned given[3])
{
    return (ch_index){given[0] ? given[0] : 1, given[1] ? given[1] : 1, given[2] ? given[2] : 1};
}

static int volume(ch_index extent) { return (int)(extent.x * extent.y * extent.z); }

static void arrange(void)
{
    for (int k = 0; k < ch.thread_count; k++) {
        ch_thread *t = &ch.threads[k];
        t->warp = &ch.warps[k / CH_WARP];
        t->warp->threads = t - k % CH_WARP;
        t->warp->block = &ch.blocks[k / ch.threads_per_block];
        t->warp->ready = t->warp->live = UINT32_MAX;
        t->index = (unsigned)k;
        t->lane = (unsigned)k % CH_WARP;
        t->stack = ch.stacks + (size_t)k * CH_STACK_BYTES;
        t->stack_pointer = ch_prepare_stack(t->stack);
        t->position = unlinear((unsigned)(k % ch.threads_per_block), ch.extent);
    }
    for (int b = 0; b < ch.block_count; b++) {
        ch.blocks[b].index = (unsigned)b;
        ch.blocks[b].warps = &ch.warps[b * ch.warps_per_block];
        ch.blocks[b].live = ch.threads_per_block;
        ch.blocks[b].position = unlinear((unsigned)b, ch.grid);
    }
}

static bool begin(void)
{
    ch.grid = extent_of(ch.launch->grid);
    ch.extent = extent_of(ch.launch->block);
    ch.block_count = volume(ch.grid);
    ch.threads_per_block = volume(ch.extent);
    ch.blocks_per_cluster = ch.launch->cluster ? (int)ch.launch->cluster : 1;
    if (ch.grid.x % (unsigned)ch.blocks_per_cluster != 0) return false;
    ch.thread_count = ch.live = ch.block_count * ch.threads_per_block;
    ch.warps_per_block = ch.threads_per_block / CH_WARP;
    ch.random = ch.launch->seed * 2654435761u + 1; /* spreads small seeds; + 1 because xorshift must start from a
                                                    * value other than 0 */
    if (!ch.random) ch.random = 1;
    ch.until_preemption = PREEMPTION_INTERVAL;
    ch.blocks = calloc((size_t)ch.block_count, sizeof *ch.blocks);
    ch.warps = calloc((size_t)ch.thread_count / CH_WARP, sizeof *ch.warps);
    ch.threads = calloc((size_t)ch.thread_count, sizeof *ch.threads);
    ch.stacks = mmap(NULL, (size_t)ch.thread_count * CH_STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!ch.blocks || !ch.warps || !ch.threads || ch.stacks == MAP_FAILED) return false;
    arrange();
    return ch_order_begin() && ch_memory_begin(ch.launch->shared_bytes);
}

static void end(void)
{
    ch.current = NULL;
    ch_memory_end();
    ch_order_end();
    for (int k = 0; k < ch.thread_count; k++) free(ch.threads[k].copies);
    if (ch.stacks != MAP_FAILED) munmap(ch.stacks, (size_t)ch.thread_count * CH_STACK_BYTES);
    free(ch.threads);
    free(ch.warps);
    free(ch.blocks);
}

bool cuda_host_run(cuda_host_memory *memory, const cuda_host_launch *launch, void (*body)(void *user), void *user,
                   cuda_host_report *report)
{
    *report = (cuda_host_report){0};
    ch = (ch_machine){.launch = launch, .memory = memory, .report = report, .body = body, .user = user};
    if (!begin()) {
        report->faulted = true;
        snprintf(report->message, sizeof report->message, "out of memory, or a grid of incomplete clusters");
    } else {
        ch.current = &ch.threads[0];
        ch.current = choose();
        ch_load_statics(ch.current->warp->block);
        ch_switch(&ch.main_stack_pointer, ch.current->stack_pointer);
        if (ch_is_checked() && !report->faulted) ch_check_published();
    }
    end();
    return !report->faulted;
}
