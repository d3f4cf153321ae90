/* history_nodes.c — a hash table with chains, and a list of entries by last use. */
#include "history/history_nodes.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    hs_node node; /* first, so a node is its entry */
    uint32_t chained, older, newer;
} entry;

struct hs_nodes {
    entry *entries;
    uint32_t *heads; /* first entry of each chain; a power of two */
    uint32_t count, capacity, most, head_count;
    uint32_t oldest, newest;
};

enum { FIRST_CAPACITY = 64 };

const hs_durations *hs_node_at(const hs_node *node, double time_s)
{
    if (node->now.weight > 0 && node->now.at_s <= time_s) return &node->now;
    for (int i = 0; i < (int)HS_EARLIER; i++)
        if (node->earlier[i].weight > 0 && node->earlier[i].at_s <= time_s) return &node->earlier[i];
    return NULL;
}

void hs_node_keep(hs_node *node, double time_s)
{
    const double shortest_s = 60, times = 6;
    double period_s = shortest_s;
    if (node->now.weight == 0) return;
    for (int i = 1; i < (int)HS_EARLIER; i++) period_s *= times;
    for (int i = HS_EARLIER - 1; i > 0; i--, period_s /= times)
        if (node->earlier[i].weight == 0 || time_s - node->earlier[i].at_s >= period_s)
            node->earlier[i] = node->earlier[i - 1];
    if (node->earlier[0].weight == 0 || time_s - node->earlier[0].at_s >= period_s) node->earlier[0] = node->now;
}

hs_nodes *hs_nodes_create(size_t maximum)
{
    hs_nodes *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    n->most = (uint32_t)maximum;
    n->oldest = n->newest = HS_NO_NODE;
    return n;
}

void hs_nodes_destroy(hs_nodes *n)
{
    if (n == NULL) return;
    free(n->entries);
    free(n->heads);
    free(n);
}

static uint32_t find(const hs_nodes *n, uint64_t hash)
{
    if (n->head_count == 0) return HS_NO_NODE;
    uint32_t slot = n->heads[hash >> 1 & (n->head_count - 1)]; /* a hash always has bit 0 set */
    while (slot != HS_NO_NODE && n->entries[slot].node.hash != hash) slot = n->entries[slot].chained;
    return slot;
}

const hs_node *hs_nodes_find(const hs_nodes *n, uint64_t hash)
{
    uint32_t slot = find(n, hash);
    return slot != HS_NO_NODE ? &n->entries[slot].node : NULL;
}

static void chain(hs_nodes *n, uint32_t slot)
{
    uint32_t *head = &n->heads[n->entries[slot].node.hash >> 1 & (n->head_count - 1)];
    n->entries[slot].chained = *head;
    *head = slot;
}

static void unchain(hs_nodes *n, uint32_t slot)
{
    uint32_t *link = &n->heads[n->entries[slot].node.hash >> 1 & (n->head_count - 1)];
    while (*link != slot) link = &n->entries[*link].chained;
    *link = n->entries[slot].chained;
}

static bool grow(hs_nodes *n)
{
    uint32_t capacity = n->capacity > 0 ? 2 * n->capacity : FIRST_CAPACITY;
    uint32_t head_count = FIRST_CAPACITY;
    while (head_count < capacity) head_count *= 2;
    uint32_t *heads = malloc(head_count * sizeof *heads);
    entry *entries = heads != NULL ? realloc(n->entries, capacity * sizeof *entries) : NULL;
    if (entries == NULL) {
        free(heads);
        return false;
    }
    free(n->heads);
    memset(heads, 0xff, head_count * sizeof *heads); /* HS_NO_NODE */
    n->entries = entries;
    n->heads = heads;
    n->capacity = capacity;
    n->head_count = head_count;
    for (uint32_t i = 0; i < n->count; i++) chain(n, i);
    return true;
}

static void leave_list(hs_nodes *n, const entry *e)
{
    if (e->older != HS_NO_NODE)
        n->entries[e->older].newer = e->newer;
    else
        n->oldest = e->newer;
    if (e->newer != HS_NO_NODE)
        n->entries[e->newer].older = e->older;
    else
        n->newest = e->older;
}

static void join_list(hs_nodes *n, uint32_t slot)
{
    n->entries[slot].older = n->newest;
    n->entries[slot].newer = HS_NO_NODE;
    if (n->newest != HS_NO_NODE)
        n->entries[n->newest].newer = slot;
    else
        n->oldest = slot;
    n->newest = slot;
}

hs_node *hs_nodes_use(hs_nodes *n, uint64_t hash)
{
    uint32_t slot = find(n, hash);
    if (slot != HS_NO_NODE) {
        leave_list(n, &n->entries[slot]);
        join_list(n, slot);
        return &n->entries[slot].node;
    }
    if (n->count < n->most) {
        if (n->count == n->capacity && !grow(n)) return NULL;
        slot = n->count++;
    } else {
        slot = n->oldest;
        leave_list(n, &n->entries[slot]);
        unchain(n, slot);
    }
    n->entries[slot] = (entry){.node.hash = hash};
    chain(n, slot);
    join_list(n, slot);
    return &n->entries[slot].node;
}

const hs_node *hs_nodes_next(const hs_nodes *n, const hs_node *previous)
{
    uint32_t slot = previous == NULL ? n->oldest : ((const entry *)(const void *)previous)->newer;
    return slot != HS_NO_NODE ? &n->entries[slot].node : NULL;
}
