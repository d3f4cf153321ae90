/* history_keys.h — the keys of a job: a hash for each mdot_history_key whose properties are known. */
#ifndef HS_KEYS_H
#define HS_KEYS_H

#include "history/mdot_history.h"

enum { HS_KEYS = MDOT_HISTORY_KEY_USER_EXACT_NAME + 1 };

typedef struct hs_keys {
    uint64_t hash[HS_KEYS]; /* 0: the job lacks a property of the key */
} hs_keys;

/* Returns SipHash-2-4 of the bytes (Aumasson and Bernstein, 2012). The seed must be secret, because a
 * user who knows it can choose texts of equal hashes. */
uint64_t hs_hash(const uint64_t seed[2], const void *bytes, size_t count);

hs_keys hs_keys_of(const uint64_t seed[2], const mdot_history_job *job);

#endif
