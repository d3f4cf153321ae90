/* operator_hash.h — hash tables for operators and blocks: hash and table size. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* FNV-1a (Fowler, Noll, Vo), 64 bits, one word at a time. The upper half is folded in because multiplying moves bits
 * up. */
#define RT_HASH_START UINT64_C(14695981039346656037)
static inline uint64_t rt_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Limit on the slots that a look-up in a hash table visits, so that operators chosen to collide cost as little as
 * others. A value beyond the limit counts as different, which is correct but makes the table longer. Ordinary values
 * are found much sooner: at most a quarter of the slots is filled, and the farthest of 10^5 values is about 18 slots
 * away. */
enum { RT_MOST_PROBES = 64 };

/* Number of table slots for `count` values: a power of two. */
static inline size_t rt_hash_slots(size_t count)
{
    size_t slots = 4;
    while (slots < 4 * count) slots *= 2;
    return slots;
}
