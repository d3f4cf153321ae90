/* history_nodes.h — a job's keys, and the table with each key's statistics. */
#ifndef HS_NODES_H
#define HS_NODES_H

#include "history/mdot_history.h"

/* A job's keys: a hash for each mdot_history_key with known properties. */

enum { HS_KEYS = MDOT_HISTORY_KEY_USER_EXACT_NAME + 1 };

typedef struct hs_keys {
    uint64_t hash[HS_KEYS]; /* 0: the job lacks a key property */
} hs_keys;

/* Returns SipHash-2-4 of the bytes (Aumasson and Bernstein, 2012). The seed must be secret: a user who knows it can
 * choose texts with equal hashes. */
uint64_t hs_hash(const uint64_t seed[2], const void *bytes, size_t count);

/* A table with a fixed number of entries; the least recently used one makes room for a new key. */

enum { HS_NO_NODE = 0xffffffff, HS_EARLIER = 6 };

/* Logarithms of durations in seconds. Weights decay with time. */
typedef struct hs_durations {
    double at_s;         /* end of the last job; weights have decayed to this time */
    double weight, mean; /* durations, or deviations from the coarser keys (history_learning.h) */
    double recent;       /* mean where each job counts as much as all earlier ones together */
} hs_durations;

/* One key's statistics. A job is compared with the estimate at the submission, but other jobs with this key have ended
 * since. Therefore a key keeps its durations at a few earlier times, a minute to days apart. */
typedef struct hs_node {
    uint64_t hash;
    hs_durations now, earlier[HS_EARLIER]; /* the latest first; weight 0: empty */
    double misses, spread; /* weight and mean of absolute estimation errors, relative to the usual error */
    double ends, failures; /* weights: all jobs, and early failures */
    double failure;        /* mean log(seconds) until early failures */
    double at_s;           /* the weights above have decayed to this time */
} hs_node;

/* Returns the key's durations at a time; NULL: none. */
const hs_durations *hs_node_at(const hs_node *node, double time_s);
/* Keeps the present durations as earlier ones, where it is time to do so. Call it before a job that ended at `time_s`
 * is added. */
void hs_node_keep(hs_node *node, double time_s);

typedef struct hs_nodes hs_nodes;

/* The caller destroys the table; NULL if memory ran out. */
hs_nodes *hs_nodes_create(size_t most);
void hs_nodes_destroy(hs_nodes *nodes);

/* Returns a key's entry, or NULL. */
const hs_node *hs_nodes_find(const hs_nodes *nodes, uint64_t hash);

/* Returns the entry of a key, and creates it if it is missing. It is valid until the next call. NULL if memory ran
 * out. */
hs_node *hs_nodes_use(hs_nodes *nodes, uint64_t hash);

/* Returns the entries from the least to the most recently used: the one behind `previous`, which is NULL at first. NULL
 * behind the last. */
const hs_node *hs_nodes_next(const hs_nodes *nodes, const hs_node *previous);

/* A word tells runs once its digits took so many more new values than known ones in the user's jobs: after run1 to
 * run16, "run17" does. Twenty sizes of a network come back, and stay. */
enum { HS_RUN_VALUES = 16 };

/* Returns the keys. The name of the finest key but one keeps digits joined to letters, and lacks words that tell runs:
 * "run7-resnet18" becomes "resnet18". */
hs_keys hs_keys_of(const uint64_t seed[2], const hs_nodes *nodes, const mdot_history_job *job);

/* Counts the values of digits in the words of an ended job's name. False if memory ran out. */
bool hs_see_words(const uint64_t seed[2], hs_nodes *nodes, const mdot_history_job *job);

#endif
