/* fair_tree.c — ranks the users in an account tree. */
#include "base/status.h"
#include "simulator/policy/backfill.h"

#include <math.h>
#include <stdlib.h>

struct sc_fair_tree {
    const sc_accounts *accounts;
    double *usage, *factor;
    double *level;            /* level fair share of each account */
    uint32_t *children;       /* accounts, grouped by parent */
    size_t *first;            /* range in children: first[account] to first[account + 1] */
    size_t user_count, depth; /* depth: levels below the root */
    uint32_t *paths;          /* [user][level]: ancestors below the root, then the user; SC_NONE behind */
    uint32_t **users;         /* paths in order of rank */
};

static bool is_user(const sc_fair_tree *tree, uint32_t account)
{
    return account > 0 && tree->first[account] == tree->first[account + 1];
}

/* Returns the user at the end of a path. */
static uint32_t user_of(const sc_fair_tree *tree, const uint32_t *path)
{
    size_t level = tree->depth;
    while (path[level - 1] == SC_NONE) level--;
    return path[level - 1];
}

static size_t depth_of(const sc_accounts *accounts, uint32_t account)
{
    size_t depth = 0;
    for (; accounts->items[account].parent != SC_NONE; account = accounts->items[account].parent) depth++;
    return depth;
}

static void group_children(sc_fair_tree *tree)
{
    size_t count = tree->accounts->count;
    for (size_t i = 1; i < count; i++) tree->first[tree->accounts->items[i].parent + 2]++;
    for (size_t i = 2; i <= count; i++) tree->first[i] += tree->first[i - 1];
    /* first[a + 1]: position of a's next child; last entry: end of the children */
    for (size_t i = 1; i < count; i++) tree->children[tree->first[tree->accounts->items[i].parent + 1]++] = (uint32_t)i;
}

static void list_users(sc_fair_tree *tree)
{
    const sc_accounts *accounts = tree->accounts;
    for (uint32_t i = 0; i < accounts->count; i++) {
        if (!is_user(tree, i)) continue;
        uint32_t *path = &tree->paths[tree->user_count * tree->depth];
        tree->users[tree->user_count++] = path;
        for (size_t level = 0; level < tree->depth; level++) path[level] = SC_NONE;
        size_t level = depth_of(accounts, i);
        for (uint32_t entry = i; level > 0; entry = accounts->items[entry].parent) path[--level] = entry;
    }
}

mdot_status sc_fair_tree_create(const sc_accounts *accounts, sc_fair_tree **out_tree, mdot_error *err)
{
    size_t count = accounts->count + 1, depth = 0;
    for (uint32_t i = 0; i < accounts->count; i++)
        depth = depth_of(accounts, i) > depth ? depth_of(accounts, i) : depth;
    const sc_array arrays[] = {SC_ARRAY(sc_fair_tree, usage, count),        SC_ARRAY(sc_fair_tree, factor, count),
                               SC_ARRAY(sc_fair_tree, level, count),        SC_ARRAY(sc_fair_tree, children, count),
                               SC_ARRAY(sc_fair_tree, first, count + 1),    SC_ARRAY(sc_fair_tree, users, count),
                               SC_ARRAY(sc_fair_tree, paths, count * depth)};
    void *tree;
    BS_TRY(SC_STATE(sc_fair_tree, arrays, &tree, err));
    *out_tree = tree;
    (*out_tree)->accounts = accounts;
    (*out_tree)->depth = depth;
    group_children(tree);
    list_users(tree);
    sc_fair_tree_rank(tree);
    return MDOT_OK;
}

void sc_fair_tree_use(sc_fair_tree *tree, uint32_t user, double gpu_s)
{
    for (uint32_t entry = user; entry != SC_NONE; entry = tree->accounts->items[entry].parent)
        tree->usage[entry] += gpu_s;
}

void sc_fair_tree_decay(sc_fair_tree *tree, double span_s)
{
    double rest = exp2(-span_s / tree->accounts->priority.half_life_s);
    for (size_t i = 0; i < tree->accounts->count; i++) tree->usage[i] *= rest;
}

/* Computes the level fair share of an account's children. Usage within a rounding error counts as none. */
static void compute_levels(sc_fair_tree *tree, uint32_t parent)
{
    double shares = 0;
    for (size_t i = tree->first[parent]; i < tree->first[parent + 1]; i++)
        shares += tree->accounts->items[tree->children[i]].shares;
    for (size_t i = tree->first[parent]; i < tree->first[parent + 1]; i++) {
        uint32_t child = tree->children[i];
        double usage = tree->usage[parent] > 0 ? tree->usage[child] / tree->usage[parent] : 0;
        double share = tree->accounts->items[child].shares / shares;
        tree->level[child] = share == 0 ? 0 : usage > 1e-12 ? share / usage : INFINITY;
    }
}

/* Compares the paths of two users from the root, level by level: the higher level fair share first. Since equal values
 * lead on to the next level, the members of tied accounts are ranked as one set. At a tie between a user and an account
 * the user comes first, as in Slurm. */
static int compare(const sc_fair_tree *tree, const uint32_t *a, const uint32_t *b)
{
    for (size_t depth = 0; depth < tree->depth; depth++) {
        if (a[depth] == SC_NONE || b[depth] == SC_NONE) return (a[depth] != SC_NONE) - (b[depth] != SC_NONE);
        double x = tree->level[a[depth]], y = tree->level[b[depth]];
        if (x != y) return x < y ? 1 : -1;
    }
    return 0;
}

static int by_path(const void *a, const void *b, void *tree)
{
    return compare(tree, *(uint32_t *const *)a, *(uint32_t *const *)b);
}

void sc_fair_tree_rank(sc_fair_tree *tree)
{
    for (uint32_t account = 0; account < tree->accounts->count; account++)
        if (!is_user(tree, account)) compute_levels(tree, account);
    qsort_r(tree->users, tree->user_count, sizeof *tree->users, by_path, tree);
    for (size_t i = 0; i < tree->user_count; i++) {
        uint32_t user = user_of(tree, tree->users[i]);
        bool is_tied = i > 0 && compare(tree, tree->users[i - 1], tree->users[i]) == 0;
        tree->factor[user] = is_tied ? tree->factor[user_of(tree, tree->users[i - 1])]
                                     : (double)(tree->user_count - i) / (double)tree->user_count;
    }
}

double sc_fair_tree_factor(const sc_fair_tree *tree, uint32_t user) { return tree->factor[user]; }

double sc_fair_tree_priority(const sc_fair_tree *tree, uint32_t user, double age_s, double part, double gpu_s)
{
    static const double shortest_s = 60, longest_s = 30 * 86400.; /* the defaults of cluster/slurm */
    const sc_priority *p = &tree->accounts->priority;
    double length = log(longest_s / fmax(gpu_s, shortest_s)) / log(longest_s / shortest_s);
    return p->age_weight * fmin(1, age_s / p->most_age_s) + p->fairshare_weight * tree->factor[user] +
           p->size_weight * part + p->length_weight * fmax(length, 0);
}
