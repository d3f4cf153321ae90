/* memory.c — global buffers, shared memory, and the check of every access to them. Every granule of writable memory
 * has a cell, which records the last writer with its time, and the readers since then. An access must be ordered
 * after the last write. A write must also be ordered after the reads. The readers of a cell are one thread, a whole
 * warp or block with the latest time, or the latest time of each block. This is coarser than the truth, which only
 * matters for threads that synchronise by other means. (Savage et al., "Eraser", 1997, for shadow memory; Flanagan
 * and Freund, "FastTrack", 2009, for epochs.) */
#include "tests/cuda_host/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, POISON = 0xff, GUARD = 0xa5 }; /* floats made of poison bytes are NaN */

/* The writer of a cell: none, the host (ordered before everything), or a thread. */
enum { WRITER_NONE = 0, WRITER_HOST = 1, WRITER_FIRST = 2 };
static const uint32_t WRITER_PENDING = 1u << 31, WRITER_ATOMIC = 1u << 30, WRITER_INDEX = (1u << 30) - 1;
/* A cell's readers: none, or a scope with an index. */
enum { READER_NONE, READER_THREAD, READER_WARP, READER_BLOCK, READER_GRID };

typedef struct cell {
    uint32_t writer, reader_index;
    ch_time written, read;
    uint32_t reader_scope;
} cell;

typedef struct region {
    char *begin;
    size_t bytes;
    const char *name;
    unsigned shift; /* a cell covers 1 << shift bytes */
    int block;      /* block of shared memory; -1 = global */
    cell *cells;    /* NULL = constant */
} region;

struct cuda_host_memory {
    region *buffers;
    int count, capacity;
};

/* The times for READER_GRID, per block, in pool slots. The first element in an unused slot links to the next. */
static struct {
    ch_time *times;
    uint32_t count, capacity, free; /* unit: slots; free is one more than the index of the first unused slot */
} grid_readers;

static const unsigned SHARED_SHIFT = 0; /* one byte, so that bool elements are distinguished */

static struct {
    region *dynamic, *statics; /* one per block */
    region statics_now;        /* the loaded block's static variables */
    size_t dynamic_stride;
    const region *last;
} shared;

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

cuda_host_memory *cuda_host_memory_create(void) { return calloc(1, sizeof(cuda_host_memory)); }

void cuda_host_memory_destroy(cuda_host_memory *memory)
{
    if (!memory) return;
    for (int k = 0; k < memory->count; k++) {
        free(memory->buffers[k].begin - GUARD_BYTES);
        free(memory->buffers[k].cells);
    }
    free(memory->buffers);
    free(memory);
}

static region *add(cuda_host_memory *memory, const char *name, size_t bytes)
{
    if (memory->count == memory->capacity) {
        int capacity = memory->capacity ? 2 * memory->capacity : 16;
        region *grown = realloc(memory->buffers, (size_t)capacity * sizeof *grown);
        if (!grown) return NULL;
        memory->buffers = grown;
        memory->capacity = capacity;
    }
    size_t whole = (bytes + 2 * GUARD_BYTES + 255) / 256 * 256;
    char *block = aligned_alloc(256, whole);
    if (!block) return NULL;
    memset(block, GUARD, whole);
    region *r = &memory->buffers[memory->count++];
    *r = (region){.begin = block + GUARD_BYTES, .bytes = bytes, .name = name, .block = -1};
    return r;
}

static void mark(region *r, uint32_t writer)
{
    size_t count = (r->bytes + ((size_t)1 << r->shift) - 1) >> r->shift;
    for (size_t k = 0; k < count; k++) r->cells[k] = (cell){.writer = writer};
}

void *cuda_host_buffer(cuda_host_memory *memory, const char *name, const void *content, size_t bytes, int element_bytes)
{
    region *r = add(memory, name, bytes);
    if (!r) return NULL;
    r->shift = element_bytes >= 4 ? 2 : element_bytes == 2 ? 1 : 0;
    r->cells = malloc((((bytes + 3) >> r->shift) + 1) * sizeof(cell));
    if (!r->cells) return NULL;
    mark(r, content ? WRITER_HOST : WRITER_NONE);
    if (content) {
        memcpy(r->begin, content, bytes);
    } else {
        memset(r->begin, POISON, bytes);
    }
    return r->begin;
}

void *cuda_host_constant(cuda_host_memory *memory, const char *name, const void *content, size_t bytes)
{
    region *r = add(memory, name, bytes);
    if (!r) return NULL;
    if (content) memcpy(r->begin, content, bytes);
    return r->begin;
}

void cuda_host_poison(cuda_host_memory *memory, void *buffer)
{
    for (int k = 0; k < memory->count; k++) {
        region *r = &memory->buffers[k];
        if (r->begin != buffer || !r->cells) continue;
        memset(r->begin, POISON, r->bytes);
        mark(r, WRITER_NONE);
    }
}

static bool holds(const region *r, const char *address) { return r && (size_t)(address - r->begin) < r->bytes; }

/* ---- Shared memory ----------------------------------------------------------------------------------------------- */

static bool make_shared(region *r, const char *name, int block, char *begin, size_t bytes)
{
    *r = (region){.begin = begin, .bytes = bytes, .name = name, .block = block, .shift = SHARED_SHIFT};
    r->cells = malloc(((bytes >> SHARED_SHIFT) + 2) * sizeof(cell));
    if (r->cells) mark(r, WRITER_NONE);
    return r->cells != NULL;
}

bool ch_memory_begin(size_t shared_bytes)
{
    ch_section section = ch_static_shared();
    size_t count = (size_t)ch.block_count, static_bytes = (size_t)(section.end - section.begin);
    shared.dynamic_stride = (shared_bytes + 2 * GUARD_BYTES + 255) / 256 * 256;
    ch.shared = aligned_alloc(256, count * shared.dynamic_stride);
    shared.dynamic = calloc(count, sizeof(region));
    shared.statics = calloc(count, sizeof(region));
    if (!ch.shared || !shared.dynamic || !shared.statics) return false;
    memset(ch.shared, POISON, count * shared.dynamic_stride);
    for (int b = 0; b < ch.block_count; b++) {
        ch_block *block = &ch.blocks[b];
        block->statics = malloc(static_bytes + 1);
        if (!block->statics) return false;
        memset(block->statics, POISON, static_bytes);
        char *begin = ch.shared + (size_t)b * shared.dynamic_stride + GUARD_BYTES;
        if (!make_shared(&shared.dynamic[b], "dynamic shared memory", b, begin, shared_bytes)) return false;
        if (!make_shared(&shared.statics[b], "static shared memory", b, section.begin, static_bytes)) return false;
    }
    /* Earlier launches' and the host's actions happen before this launch. */
    for (int k = 0; k < ch.memory->count; k++) {
        region *r = &ch.memory->buffers[k];
        size_t cells = r->cells ? (r->bytes + ((size_t)1 << r->shift) - 1) >> r->shift : 0;
        for (size_t c = 0; c < cells; c++)
            r->cells[c] = (cell){.writer = r->cells[c].writer == WRITER_NONE ? WRITER_NONE : WRITER_HOST};
    }
    shared.last = NULL;
    return true;
}

static bool is_guard(const char *bytes)
{
    for (int k = 0; k < GUARD_BYTES; k++)
        if ((unsigned char)bytes[k] != GUARD) return false;
    return true;
}

void ch_memory_end(void)
{
    for (int k = 0; k < ch.memory->count; k++) {
        const region *r = &ch.memory->buffers[k];
        if (ch.report->faulted || (is_guard(r->begin - GUARD_BYTES) && is_guard(r->begin + r->bytes))) continue;
        ch.report->faulted = true;
        snprintf(ch.report->message, sizeof ch.report->message, "something was written around %s", r->name);
    }
    for (int b = 0; b < ch.block_count; b++) {
        if (shared.dynamic) free(shared.dynamic[b].cells);
        if (shared.statics) free(shared.statics[b].cells);
        if (ch.blocks) free(ch.blocks[b].statics);
    }
    free(shared.dynamic);
    free(shared.statics);
    free(ch.shared);
    free(grid_readers.times);
    memset(&grid_readers, 0, sizeof grid_readers);
    memset(&shared, 0, sizeof shared);
}

void *ch_shared(const ch_block *block) { return shared.dynamic[block->index].begin; }

bool ch_is_shared(const ch_block *block, const void *address) { return holds(&shared.dynamic[block->index], address); }

void ch_load_statics(ch_block *block)
{
    ch_section section = ch_static_shared();
    size_t bytes = (size_t)(section.end - section.begin);
    if (ch.loaded) memcpy(ch.loaded->statics, section.begin, bytes);
    memcpy(section.begin, block->statics, bytes);
    shared.statics_now = shared.statics[block->index];
    ch.loaded = block;
    shared.last = NULL;
}

/* ---- Memory that the host reads ---------------------------------------------------------------------------------- */

static void report_unpublished(const region *r, size_t at, const char *what, unsigned thread)
{
    ch.report->faulted = true;
    ch.report->thread = thread;
    snprintf(ch.report->message, sizeof ch.report->message, "the host may read byte %zu of %s, which %s%s", at, r->name,
             what, thread == UINT32_MAX ? "nobody wrote" : ch_place(&ch.threads[thread]));
}

static void check_published(const region *r, const cuda_host_published *p)
{
    size_t begin = (size_t)((const char *)p->begin - r->begin) >> r->shift;
    size_t end = ((size_t)((const char *)p->begin - r->begin) + p->bytes + ((size_t)1 << r->shift) - 1) >> r->shift;
    for (size_t c = begin; c < end; c++) {
        uint32_t writer = r->cells[c].writer;
        if (writer == WRITER_HOST) continue;
        if (writer == WRITER_NONE) {
            report_unpublished(r, c << r->shift, "", UINT32_MAX);
            return;
        }
        unsigned thread = (writer & WRITER_INDEX) - WRITER_FIRST;
        if (ch_was_released(p->flag, thread, r->cells[c].written)) continue;
        report_unpublished(r, c << r->shift, "the flag does not release, from ", thread);
        return;
    }
}

void ch_check_published(void)
{
    for (const cuda_host_published *p = ch.launch->published; p && p->flag && !ch.report->faulted; p++)
        for (int k = 0; k < ch.memory->count; k++)
            if ((size_t)((const char *)p->begin - ch.memory->buffers[k].begin) < ch.memory->buffers[k].bytes)
                check_published(&ch.memory->buffers[k], p);
}

/* ---- Accesses ---------------------------------------------------------------------------------------------------- */

static const region *find(const char *address)
{
    unsigned block = ch.current->warp->block->index;
    if (holds(shared.last, address) && (shared.last->block < 0 || shared.last->block == (int)block)) return shared.last;
    if (holds(&shared.dynamic[block], address)) return shared.last = &shared.dynamic[block];
    if (holds(&shared.statics_now, address)) return shared.last = &shared.statics_now;
    const ch_block *first = ch_cluster_of(ch.current->warp->block);
    for (int b = 0; b < ch.blocks_per_cluster; b++)
        if (first[b].live > 0 && ch_is_shared(&first[b], address)) return &shared.dynamic[first[b].index];
    for (int k = 0; k < ch.memory->count; k++)
        if (holds(&ch.memory->buffers[k], address)) return shared.last = &ch.memory->buffers[k];
    return NULL;
}

static const char *outside(const char *address)
{
    static char text[160];
    for (int k = 0; k < ch.memory->count; k++) {
        const region *r = &ch.memory->buffers[k];
        ptrdiff_t at = address - r->begin;
        if (at < -GUARD_BYTES || at >= (ptrdiff_t)r->bytes + GUARD_BYTES) continue;
        snprintf(text, sizeof text, "byte %td of %s, which has %zu", at, r->name, r->bytes);
        return text;
    }
    ptrdiff_t at = address - ch.shared;
    ptrdiff_t end = (ptrdiff_t)((size_t)ch.block_count * shared.dynamic_stride);
    if (at < 0 || at >= end) return "memory of no buffer";
    snprintf(text, sizeof text, "byte %td of block %td's shared memory, which has %zu",
             at % (ptrdiff_t)shared.dynamic_stride - GUARD_BYTES, at / (ptrdiff_t)shared.dynamic_stride,
             shared.dynamic[0].bytes);
    return text;
}

typedef struct access { /* for reports */
    const region *where;
    size_t at;
    ch_access_kind kind;
    int line;
    const void *pc;
} access;

static const char *verb(ch_access_kind kind)
{
    static const char *const verbs[] = {"reads", "writes", "updates", "copies to", "copies to"};
    return verbs[kind];
}

_Noreturn static void race(const access *a, const char *what, const char *reader)
{
    ch_fault(a->line, a->pc, "data race: %s byte %zu of %s, which %s %s without synchronisation", verb(a->kind), a->at,
             a->where->name, reader, what);
}

static void check_writer(const access *a, const cell *c)
{
    const ch_thread *t = ch.current;
    if (c->writer <= WRITER_HOST) return;
    unsigned writer = (c->writer & WRITER_INDEX) - WRITER_FIRST;
    if (c->writer & WRITER_PENDING) {
        if (a->kind == CH_COPY_END && writer == t->index) return;
        ch_fault(a->line, a->pc, "%s byte %zu of %s, where a cp.async of %s wasn't waited for", verb(a->kind), a->at,
                 a->where->name, ch_place(&ch.threads[writer]));
    }
    if (a->kind == CH_ATOMIC && (c->writer & WRITER_ATOMIC)) return;
    if (!ch_knows(t, writer, c->written)) race(a, "wrote", ch_place(&ch.threads[writer]));
}

static ch_time *grid_slot(uint32_t index) { return grid_readers.times + (size_t)index * (size_t)ch.block_count; }

static uint32_t take_grid_slot(void)
{
    uint32_t index = grid_readers.count;
    if (grid_readers.free) {
        index = grid_readers.free - 1;
        grid_readers.free = *grid_slot(index);
    } else {
        if (index == grid_readers.capacity) {
            uint32_t capacity = index ? 2 * index : 1024;
            size_t bytes = (size_t)capacity * (size_t)ch.block_count * sizeof(ch_time);
            ch_time *grown = realloc(grid_readers.times, bytes);
            if (!grown) ch_fault(0, NULL, "out of memory");
            grid_readers.times = grown;
            grid_readers.capacity = capacity;
        }
        grid_readers.count++;
    }
    memset(grid_slot(index), 0, (size_t)ch.block_count * sizeof(ch_time));
    return index;
}

static void forget_readers(cell *c)
{
    if (c->reader_scope == READER_GRID) {
        *grid_slot(c->reader_index) = grid_readers.free;
        grid_readers.free = c->reader_index + 1;
    }
    c->reader_scope = READER_NONE;
}

static bool knows_grid(const ch_thread *t, const ch_time *times)
{
    for (int b = 0; b < ch.block_count; b++)
        if (times[b] && !ch_knows_block(t, (unsigned)b, times[b])) return false;
    return true;
}

static bool knows_readers(const cell *c)
{
    const ch_thread *t = ch.current;
    switch (c->reader_scope) {
    case READER_NONE: return true;
    case READER_THREAD: return ch_knows(t, c->reader_index, c->read);
    case READER_WARP: return ch_knows_warp(t, c->reader_index, c->read);
    case READER_BLOCK: return ch_knows_block(t, c->reader_index, c->read);
    default: return knows_grid(t, grid_slot(c->reader_index));
    }
}

static void check_readers(const access *a, const cell *c)
{
    if (knows_readers(c)) return;
    char reader[48] = "several blocks";
    if (c->reader_scope == READER_THREAD) {
        snprintf(reader, sizeof reader, "%s", ch_place(&ch.threads[c->reader_index]));
    } else if (c->reader_scope == READER_WARP) {
        unsigned warps = (unsigned)ch.warps_per_block;
        snprintf(reader, sizeof reader, "block %u warp %u", c->reader_index / warps, c->reader_index % warps);
    } else if (c->reader_scope == READER_BLOCK) {
        snprintf(reader, sizeof reader, "block %u", c->reader_index);
    }
    race(a, "read", reader);
}

/* Sets the readers to the smallest scope that covers the previous readers and the current thread. */
static void add_reader(cell *c)
{
    const ch_thread *t = ch.current;
    unsigned warp = t->index / CH_WARP, block = t->warp->block->index, warps = (unsigned)ch.warps_per_block;
    if (c->reader_scope == READER_GRID) {
        grid_slot(c->reader_index)[block] = ch.now;
        return;
    }
    unsigned their_warp = c->reader_scope == READER_THREAD ? c->reader_index / CH_WARP : c->reader_index;
    unsigned their_block = c->reader_scope == READER_BLOCK ? c->reader_index : their_warp / warps;
    if (c->reader_scope != READER_BLOCK && their_warp == warp) {
        c->reader_scope = READER_WARP;
        c->reader_index = warp;
    } else if (their_block == block) {
        c->reader_scope = READER_BLOCK;
        c->reader_index = block;
    } else {
        c->reader_scope = READER_GRID;
        c->reader_index = take_grid_slot();
        grid_slot(c->reader_index)[their_block] = c->read;
        grid_slot(c->reader_index)[block] = ch.now;
    }
    c->read = ch.now;
}

static void note_read(cell *c)
{
    const ch_thread *t = ch.current;
    bool alone = c->reader_scope == READER_NONE || (c->reader_scope == READER_THREAD && c->reader_index == t->index);
    if (!alone && !knows_readers(c)) {
        add_reader(c);
        return;
    }
    forget_readers(c);
    c->reader_scope = READER_THREAD;
    c->reader_index = t->index;
    c->read = ch.now;
}

static void note_write(cell *c, ch_access_kind kind)
{
    c->writer = ch.current->index + WRITER_FIRST;
    if (kind == CH_COPY_BEGIN) c->writer |= WRITER_PENDING;
    if (kind == CH_ATOMIC) c->writer |= WRITER_ATOMIC;
    c->written = ch.now;
    forget_readers(c);
}

void ch_check(const void *address, size_t bytes, ch_access_kind kind, int line, const void *pc)
{
    const char *from = address;
    const region *r = find(from);
    if (!r) {
        if (kind == CH_READ && ch_in_module(address)) return;
        ch_fault(line, pc, "%s %s", verb(kind), outside(from));
    }
    access a = {r, (size_t)(from - r->begin), kind, line, pc};
    if (bytes > r->bytes - a.at)
        ch_fault(line, pc, "%s %zu bytes at %zu of %s, which has %zu", verb(kind), bytes, a.at, r->name, r->bytes);
    if (!r->cells) {
        if (kind != CH_READ) ch_fault(line, pc, "%s %s, which is constant", verb(kind), r->name);
        return;
    }
    if (!ch_is_checked()) return;
    size_t last = (a.at + bytes - 1) >> r->shift;
    for (size_t k = a.at >> r->shift; k <= last; k++) {
        cell *c = &r->cells[k];
        a.at = k << r->shift;
        if (c->writer == WRITER_NONE && (kind == CH_READ || kind == CH_ATOMIC))
            ch_fault(line, pc, "%s byte %zu of %s, which nothing wrote", verb(kind), a.at, r->name);
        check_writer(&a, c);
        if (kind == CH_READ) {
            note_read(c);
            continue;
        }
        if (kind != CH_ATOMIC) check_readers(&a, c);
        note_write(c, kind);
    }
}
