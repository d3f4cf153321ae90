/* job_order.c — the treap behind job_order.h. Priorities are a hash of the job's number, so the shape depends only on
 * the jobs. */
#include "simulator/core/job_order.h"
#include "base/status.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

typedef struct sc_order_node {
    double key;
    int64_t place;            /* position among equal keys */
    double seconds, shortest; /* the job's seconds, and the least in the subtree */
    uint32_t left, right;
    uint32_t previous, next; /* neighbours in the order, or SC_NONE */
    int gpus, narrowest;     /* the job's GPUs, and the least in the subtree */
    bool present;
} node;

size_t sc_order_bytes(const sc_workload *workload) { return (workload->job_count + 1) * sizeof(node); }

void sc_order_begin(sc_order *order, const sc_workload *workload)
{
    *order = (sc_order){.nodes = order->nodes, .root = SC_NONE, .first = SC_NONE};
    for (size_t i = 0; i < workload->job_count; i++) order->nodes[i].gpus = workload->jobs[i].gpus;
}

mdot_status sc_order_create(const sc_workload *workload, sc_order **out_order, mdot_error *err)
{
    const sc_array arrays[] = {{offsetof(sc_order, nodes), sc_order_bytes(workload)}};
    void *order;
    BS_TRY(SC_STATE(sc_order, arrays, &order, err));
    sc_order_begin(order, workload);
    *out_order = order;
    return MDOT_OK;
}

/* A 32-bit finalizer (multiplications and shifts) makes neighbours' priorities unrelated. */
static uint32_t priority(uint32_t job)
{
    uint32_t x = job + 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static bool is_before(const node *a, const node *b)
{
    return a->key < b->key || (a->key == b->key && a->place < b->place);
}

static int narrowest(const sc_order *order, uint32_t entry)
{
    return entry == SC_NONE ? INT_MAX : order->nodes[entry].narrowest;
}

static double shortest(const sc_order *order, uint32_t entry)
{
    return entry == SC_NONE ? INFINITY : order->nodes[entry].shortest;
}

static void update(sc_order *order, uint32_t entry)
{
    node *n = &order->nodes[entry];
    double left_s = shortest(order, n->left), right_s = shortest(order, n->right);
    n->shortest = n->seconds < left_s ? n->seconds : left_s;
    if (right_s < n->shortest) n->shortest = right_s;
    int left = narrowest(order, n->left), right = narrowest(order, n->right);
    n->narrowest = n->gpus;
    if (left < n->narrowest) n->narrowest = left;
    if (right < n->narrowest) n->narrowest = right;
}

/* Splits `at` into the part before `pivot` and the part behind it. */
static void split(sc_order *order, uint32_t entry, const node *pivot, uint32_t *out_before, uint32_t *out_behind)
{
    if (entry == SC_NONE) {
        *out_before = *out_behind = SC_NONE;
        return;
    }
    node *n = &order->nodes[entry];
    if (is_before(n, pivot)) {
        split(order, n->right, pivot, &n->right, out_behind);
        *out_before = entry;
    } else {
        split(order, n->left, pivot, out_before, &n->left);
        *out_behind = entry;
    }
    update(order, entry);
}

static uint32_t join(sc_order *order, uint32_t before, uint32_t behind)
{
    if (before == SC_NONE) return behind;
    if (behind == SC_NONE) return before;
    uint32_t top;
    if (priority(before) > priority(behind)) {
        top = before;
        order->nodes[top].right = join(order, order->nodes[top].right, behind);
    } else {
        top = behind;
        order->nodes[top].left = join(order, before, order->nodes[top].left);
    }
    update(order, top);
    return top;
}

static uint32_t insert(sc_order *order, uint32_t entry, uint32_t job)
{
    node *n = &order->nodes[job];
    if (entry != SC_NONE && priority(entry) > priority(job)) {
        uint32_t *side = is_before(n, &order->nodes[entry]) ? &order->nodes[entry].left : &order->nodes[entry].right;
        *side = insert(order, *side, job);
        update(order, entry);
        return entry;
    }
    split(order, entry, n, &n->left, &n->right);
    update(order, job);
    return job;
}

static uint32_t take_out(sc_order *order, uint32_t entry, uint32_t job)
{
    node *n = &order->nodes[entry];
    if (entry == job) return join(order, n->left, n->right);
    uint32_t *side = is_before(&order->nodes[job], n) ? &n->left : &n->right;
    *side = take_out(order, *side, job);
    update(order, entry);
    return entry;
}

/* Links a job behind `previous`, SC_NONE: at the front. */
static void link_behind(sc_order *order, uint32_t previous, uint32_t job)
{
    node *n = &order->nodes[job];
    n->previous = previous;
    n->next = previous == SC_NONE ? order->first : order->nodes[previous].next;
    if (n->next != SC_NONE) order->nodes[n->next].previous = job;
    if (previous == SC_NONE)
        order->first = job;
    else
        order->nodes[previous].next = job;
}

static void unlink_job(sc_order *order, uint32_t job)
{
    const node *n = &order->nodes[job];
    if (n->next != SC_NONE) order->nodes[n->next].previous = n->previous;
    if (n->previous == SC_NONE)
        order->first = n->next;
    else
        order->nodes[n->previous].next = n->next;
}

/* Returns the last job in the tree before a job outside. */
static uint32_t find_previous(const sc_order *order, const node *outside)
{
    uint32_t found = SC_NONE;
    for (uint32_t entry = order->root; entry != SC_NONE;) {
        bool is_right = is_before(&order->nodes[entry], outside);
        if (is_right) found = entry;
        entry = is_right ? order->nodes[entry].right : order->nodes[entry].left;
    }
    return found;
}

void sc_order_remove(sc_order *order, uint32_t job)
{
    if (!order->nodes[job].present) return;
    unlink_job(order, job);
    order->root = take_out(order, order->root, job);
    order->nodes[job].present = false;
    order->count--;
}

static void put(sc_order *order, uint32_t job, double key, int64_t place)
{
    sc_order_remove(order, job);
    node *n = &order->nodes[job];
    *n = (node){.key = key,
                .place = place,
                .seconds = n->seconds,
                .left = SC_NONE,
                .right = SC_NONE,
                .gpus = n->gpus,
                .present = true};
    link_behind(order, find_previous(order, n), job);
    order->root = insert(order, order->root, job);
    order->count++;
}

void sc_order_put_last(sc_order *order, uint32_t job, double key) { put(order, job, key, ++order->last_place); }

void sc_order_put_first(sc_order *order, uint32_t job, double key) { put(order, job, key, --order->first_place); }

void sc_order_set_seconds(sc_order *order, uint32_t job, double seconds)
{
    assert(!order->nodes[job].present);
    order->nodes[job].seconds = seconds;
}

double sc_order_key(const sc_order *order, uint32_t job) { return order->nodes[job].key; }

size_t sc_order_count(const sc_order *order) { return order->count; }

static bool fits(int gpus, double seconds, const sc_room *room)
{
    return gpus <= room->spare || (gpus <= room->gpus && seconds <= room->seconds);
}

/* A subtree is skipped if even the narrowest width and shortest time would not fit. */
static uint32_t find_next(const sc_order *order, uint32_t entry, const node *after, const sc_room *room)
{
    if (entry == SC_NONE || !fits(order->nodes[entry].narrowest, order->nodes[entry].shortest, room)) return SC_NONE;
    const node *n = &order->nodes[entry];
    if (after != NULL && !is_before(after, n)) return find_next(order, n->right, after, room);
    uint32_t found = find_next(order, n->left, after, room);
    if (found != SC_NONE) return found;
    return fits(n->gpus, n->seconds, room) ? entry : find_next(order, n->right, after, room);
}

uint32_t sc_order_next_in(const sc_order *order, uint32_t after, const sc_room *room)
{
    uint32_t successor = after == SC_NONE ? order->first : order->nodes[after].next;
    bool is_linked = after == SC_NONE || order->nodes[after].present;
    if (is_linked &&
        (successor == SC_NONE || fits(order->nodes[successor].gpus, order->nodes[successor].seconds, room)))
        return successor;
    return find_next(order, order->root, after == SC_NONE ? NULL : &order->nodes[after], room);
}

uint32_t sc_order_next(const sc_order *order, uint32_t after, int gpus)
{
    return sc_order_next_in(order, after, &(sc_room){.gpus = gpus, .spare = gpus, .seconds = INFINITY});
}

/* Insertion sort, because the arrays are short and nearly sorted. */
static void sort_by_place(const sc_order *order, uint32_t *jobs, double *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t job = jobs[i];
        double key = keys[i];
        size_t j = i;
        for (; j > 0 && is_before(&order->nodes[job], &order->nodes[jobs[j - 1]]); j--) {
            jobs[j] = jobs[j - 1];
            keys[j] = keys[j - 1];
        }
        jobs[j] = job;
        keys[j] = key;
    }
}

void sc_order_settle(sc_order *order, uint32_t *jobs, double *keys, size_t count)
{
    sort_by_place(order, jobs, keys, count);
    /* A job whose key shrinks was behind the jobs that have the new key already, and stays behind them. Most jobs keep
     * their neighbours, so that their key changes in place. Before job i all keys are new, behind it all are old. */
    for (size_t i = 0; i < count; i++) {
        node *n = &order->nodes[jobs[i]];
        if (!(keys[i] < n->key)) continue;
        node moved = {.key = keys[i], .place = n->place};
        if (n->previous == SC_NONE || is_before(&order->nodes[n->previous], &moved))
            n->key = keys[i];
        else
            sc_order_put_last(order, jobs[i], keys[i]);
    }
    for (size_t i = count; i-- > 0;) {
        node *n = &order->nodes[jobs[i]];
        if (!(keys[i] > n->key)) continue;
        node moved = {.key = keys[i], .place = n->place};
        if (n->next == SC_NONE || is_before(&moved, &order->nodes[n->next]))
            n->key = keys[i];
        else
            sc_order_put_first(order, jobs[i], keys[i]);
    }
}
