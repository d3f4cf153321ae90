/* copy.c — cp.async: copies from global to shared memory that arrive late. PTX ISA, "Data Movement and Conversion
 * Instructions: Asynchronous copy": a copy is unordered until the issuing thread has waited for it. Its destination
 * then belongs to that thread until the next barrier. Before the wait the destination holds poison here, and any access
 * to it is a fault (memory.c). The emulator copies at the wait, or at a random time before it, so unchecked code sees
 * late data as well. */
#include "tests/cuda_host/machine.h"

#include <stdlib.h>
#include <string.h>

static void arrive(const ch_copy *c)
{
    memcpy(c->to, c->from, (size_t)c->source_bytes);
    memset((char *)c->to + c->source_bytes, 0, (size_t)(c->bytes - c->source_bytes));
}

void ch_copy_async(void *to, const void *from, int bytes, int source_bytes, int line)
{
    ch_thread *t = ch.current;
    if (bytes != 4 && bytes != 8 && bytes != 16) ch_fault(line, NULL, "cp.async of %d bytes", bytes);
    if (source_bytes < 0 || source_bytes > bytes)
        ch_fault(line, NULL, "cp.async reads %d of %d bytes", source_bytes, bytes);
    if (((uintptr_t)to | (uintptr_t)from) % (unsigned)bytes)
        ch_fault(line, NULL, "misaligned cp.async of %d bytes", bytes);
    if (source_bytes) ch_check(from, (size_t)source_bytes, CH_READ, line, NULL);
    ch_check(to, (size_t)bytes, CH_COPY_BEGIN, line, NULL);
    if (t->copy_count == t->copy_capacity) {
        int capacity = t->copy_capacity ? 2 * t->copy_capacity : 8;
        ch_copy *grown = realloc(t->copies, (size_t)capacity * sizeof *grown);
        if (!grown) ch_fault(line, NULL, "out of memory");
        t->copies = grown;
        t->copy_capacity = capacity;
    }
    ch_copy *c = &t->copies[t->copy_count++];
    *c = (ch_copy){to, from, bytes, source_bytes, t->group, line};
    memset(to, 0xff, (size_t)bytes);
    if (ch_random() % 4 == 0) arrive(c);
}

void ch_copy_commit(int line)
{
    if (ch_reached("cp_async_commit", line)) ch.current->group++;
}

/* Finishes the current thread's copies of all groups before `group`. */
static void finish(int group)
{
    ch_thread *t = ch.current;
    int kept = 0;
    for (int k = 0; k < t->copy_count; k++) {
        const ch_copy c = t->copies[k];
        if (c.group >= group) {
            t->copies[kept++] = c;
            continue;
        }
        if (c.source_bytes) ch_check(c.from, (size_t)c.source_bytes, CH_READ, c.line, NULL);
        arrive(&c);
        ch_check(c.to, (size_t)c.bytes, CH_COPY_END, c.line, NULL);
    }
    t->copy_count = kept;
}

void ch_copy_wait(int pending_groups, int line)
{
    if (ch_reached("cp_async_wait", line)) finish(ch.current->group - pending_groups);
}

void ch_copy_wait_all(int line)
{
    if (ch_reached("cp_async_wait", line)) finish(ch.current->group + 1);
}
