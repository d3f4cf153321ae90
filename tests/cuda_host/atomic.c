/* atomic.c — atomics, and flags with acquire and release at device scope. A read-modify-write keeps the knowledge
 * that was released at the flag before (PTX ISA, "Memory Consistency Model": a release pattern continues through it).
 * A plain release store replaces it. */
#include "tests/cuda_host/machine.h"

#include <string.h>

static void check(const void *address, ch_access_kind kind, int line)
{
    if ((uintptr_t)address % sizeof(uint32_t)) ch_fault(line, NULL, "misaligned atomic");
    ch_check(address, sizeof(uint32_t), kind, line, NULL);
}

static uint32_t combine(ch_atomic what, uint32_t old, uint32_t operand)
{
    float x, y;
    switch (what) {
    case CH_ATOMIC_ADD: return old + operand;
    case CH_ATOMIC_MAX_U32: return old > operand ? old : operand;
    case CH_ATOMIC_EXCHANGE: return operand;
    case CH_ATOMIC_ADD_F32:
        memcpy(&x, &old, sizeof x);
        memcpy(&y, &operand, sizeof y);
        x += y;
        memcpy(&old, &x, sizeof old);
        return old;
    }
    return old;
}

uint32_t ch_atomic_rmw(ch_atomic what, ch_order order, uint32_t *address, uint32_t operand, int line)
{
    check(address, CH_ATOMIC, line);
    uint32_t old = *address;
    *address = combine(what, old, operand);
    ch_order_read(ch.current, address, order & CH_ACQUIRE);
    ch_order_write(ch.current, address, order & CH_RELEASE, true);
    ch_wake_pollers(address);
    return old;
}

uint32_t ch_load_flag(ch_order order, const uint32_t *address, int line)
{
    check(address, CH_ATOMIC, line);
    ch_poll(address, *address, "a flag", line);
    ch.current->polled_value = *address; /* the value may have changed in the meantime */
    ch_order_read(ch.current, address, order & CH_ACQUIRE);
    return *address;
}

void ch_store_flag(ch_order order, uint32_t *address, uint32_t value, int line)
{
    check(address, CH_ATOMIC, line);
    *address = value;
    ch_order_write(ch.current, address, order & CH_RELEASE, false);
    ch_wake_pollers(address);
}

void ch_threadfence(int line)
{
    if (ch_reached("__threadfence", line)) ch_order_fence(ch.current);
}

void ch_grid_barrier(uint32_t *counter, uint32_t target, int line)
{
    if (!ch_reached("grid_barrier", line)) return;
    ch_barrier(line);
    if (ch.current->index % (unsigned)ch.threads_per_block == 0) {
        ch_atomic_rmw(CH_ATOMIC_ADD, CH_RELEASE, counter, 1, line);
        while ((int32_t)(ch_load_flag(CH_ACQUIRE, counter, line) - target) < 0) continue;
    }
    ch_barrier(line);
}
