/* packing.c — keeps jobs on the same nodes, or packs all jobs anew. */
#include "base/status.h"
#include "simulator/policy/allocation.h"

#include <stdlib.h>
#include <string.h>

typedef struct packing {
    const sc_view *view;
    const sc_share *shares;
    size_t count;
    size_t *order;            /* of shares, the widest first */
    int *left;                /* free GPUs of each node */
    int widest[SC_MAX_TYPES]; /* largest node of each type */
    sc_part *parts;           /* behind each other, in the order in which shares were placed */
    size_t *first, *number;   /* of each share's parts */
    size_t part_count;
} packing;

static mdot_status create(const sc_view *view, const sc_share *shares, size_t count, packing **out, mdot_error *err)
{
    const sc_array arrays[] = {SC_ARRAY(packing, order, count + 1),
                               SC_ARRAY(packing, left, view->cluster->node_count + 1),
                               SC_ARRAY(packing, parts, view->cluster->gpus + 1), SC_ARRAY(packing, first, count + 1),
                               SC_ARRAY(packing, number, count + 1)};
    void *memory;
    BS_TRY(SC_STATE(packing, arrays, &memory, err));
    packing *p = *out = memory;
    p->view = view;
    p->shares = shares;
    p->count = count;
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        p->widest[type] = view->cluster->types[type].widest_node;
    return MDOT_OK;
}

static void take(packing *p, size_t share, uint32_t node, int gpus)
{
    if (p->number[share]++ == 0) p->first[share] = p->part_count;
    p->parts[p->part_count++] = (sc_part){node, gpus};
    p->left[node] -= gpus;
}

/* Lets a job stay where it is. */
static bool keep(packing *p, size_t share)
{
    const sc_share *s = &p->shares[share];
    const sc_state *state = &p->view->states[s->job];
    const sc_part *parts = &p->view->parts[state->first_part];
    if (state->phase != SC_RUNNING || state->type != s->type || state->gpus != s->gpus) return false;
    for (size_t i = 0; i < state->part_count; i++)
        if (parts[i].gpus > p->left[parts[i].node]) return false;
    for (size_t i = 0; i < state->part_count; i++) take(p, share, parts[i].node, parts[i].gpus);
    return true;
}

/* Returns the type's fullest node with so many free GPUs, or SC_NONE. */
static uint32_t fullest(const packing *p, unsigned type, int gpus)
{
    uint32_t best = SC_NONE;
    const sc_cluster *c = p->view->cluster;
    for (uint32_t node = 0; node < c->node_count && (best == SC_NONE || p->left[best] > gpus); node++)
        if (c->nodes[node].type == type && p->left[node] >= gpus && (best == SC_NONE || p->left[node] < p->left[best]))
            best = node;
    return best;
}

/* Returns the emptiest node of the type, or SC_NONE if all are full. */
static uint32_t emptiest(const packing *p, unsigned type)
{
    uint32_t best = SC_NONE;
    const sc_cluster *c = p->view->cluster;
    for (uint32_t node = 0; node < c->node_count && (best == SC_NONE || p->left[best] < p->widest[type]); node++)
        if (c->nodes[node].type == type && p->left[node] > (best == SC_NONE ? 0 : p->left[best])) best = node;
    return best;
}

/* Places a job on as few nodes as there are. Returns whether these are as few as its width needs. */
static bool place(packing *p, size_t share)
{
    const sc_share *s = &p->shares[share];
    int missing = s->gpus, widest = p->widest[s->type];
    for (uint32_t node; missing > 0; missing -= p->parts[p->part_count - 1].gpus) {
        node = missing < widest ? fullest(p, s->type, missing) : SC_NONE;
        if (node == SC_NONE) node = emptiest(p, s->type);
        take(p, share, node, p->left[node] < missing ? p->left[node] : missing);
    }
    return p->number[share] <= (size_t)((s->gpus + widest - 1) / widest);
}

/* Places all jobs of a type. False: a job has more nodes than necessary. */
static bool place_type(packing *p, unsigned type, bool keeps)
{
    bool is_tight = true;
    for (size_t i = 0; i < p->count; i++)
        if (p->shares[i].type == type && keeps) keep(p, i);
    for (size_t i = 0; i < p->count; i++) {
        size_t share = p->order[i];
        if (p->shares[share].type == type && p->number[share] == 0) is_tight &= place(p, share);
    }
    return is_tight;
}

/* Frees the nodes of a type. */
static void clear_type(packing *p, unsigned type)
{
    const sc_cluster *c = p->view->cluster;
    for (uint32_t node = 0; node < c->node_count; node++)
        if (c->nodes[node].type == type) p->left[node] = c->nodes[node].gpus;
    for (size_t i = 0; i < p->count; i++)
        if (p->shares[i].type == type) p->number[i] = 0;
}

/* The widest share first, then the first one. */
static int by_width(const void *left, const void *right, void *shares)
{
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int x = ((const sc_share *)shares)[a].gpus, y = ((const sc_share *)shares)[b].gpus;
    return x != y ? (x < y) - (x > y) : (a > b) - (a < b);
}

mdot_status sc_pack(const sc_view *view, sc_plan *plan, const sc_share *shares, size_t count, mdot_error *err)
{
    packing *p;
    BS_TRY(create(view, shares, count, &p, err));
    for (size_t i = 0; i < count; i++) p->order[i] = i;
    qsort_r(p->order, count, sizeof *p->order, by_width, (void *)(uintptr_t)shares);
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        size_t before = p->part_count;
        clear_type(p, type);
        if (place_type(p, type, true)) continue;
        p->part_count = before;
        clear_type(p, type);
        place_type(p, type, false);
    }
    for (size_t i = 0; i < count; i++) {
        sc_plan_run(plan, shares[i].job, shares[i].type, shares[i].gpus);
        sc_plan_set_batch(plan, shares[i].batch);
        for (size_t k = 0; k < p->number[i]; k++)
            sc_plan_take(plan, p->parts[p->first[i] + k].node, p->parts[p->first[i] + k].gpus);
    }
    free(p);
    return MDOT_OK;
}
