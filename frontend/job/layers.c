/* layers.c — finds the block (layer) that each operator of a job belongs to.
 *
 * If the exporter kept names, they define the blocks: "encoder.layer.3.output" is in block 3 of the level
 * "encoder.layer". The outermost level is used that contains at least two equal blocks of more than one operator,
 * where libmdot's comparison decides equality. The other blocks of such a level count as well. A block is a
 * contiguous stretch of the sequence. It includes all operators between its own, and the nameless operators between
 * it and the next block of its level. A level whose blocks overlap is ignored. If names are missing, repeated
 * stretches become blocks (repeats.c).
 *
 * The scopes of nodes are tried before parameters, and the two are used separately, because PyTorch writes
 * "/layer1/layer1.0/conv1/Conv" beside "layer1.0.conv1.weight".
 *
 * Work: a stretch is at most MAX_SPARSITY times as long as the number of operators that name it. Therefore each of at
 * most MAX_DEPTH levels of indices costs O(n log n).
 */
#include "frontend/job/operator_sequence.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_SPARSITY = 16 };

/* An operator whose path has an index at a given depth, for example "encoder.layer" . "3". */
typedef struct site {
    const char *path;
    size_t level, block; /* length of the path prefix naming the level, and the block */
    uint32_t at;
} site;

/* Operators that libmdot considers equal have equal kinds. */
typedef struct layers {
    const fe_job *job;
    const mdot_job_operator *operators;
    uint32_t count;
    uint32_t *kind;
    uint32_t *mark;    /* by operator: 0, or the block number, in any order */
    uint32_t marked;   /* number of blocks */
    const char **path; /* by operator: its module, or NULL */
    /* An array with one element per operator, for the running step. */
    const mdot_job_operator **sorted;
    site *sites;
    fe_stretch *blocks;
} layers;

static int compare_operators(const void *a, const void *b)
{
    const mdot_job_operator *x = *(const mdot_job_operator *const *)a, *y = *(const mdot_job_operator *const *)b;
    if (x->known != y->known) return x->known ? 1 : -1;
    int order = strcmp(x->type, y->type);
    if (order == 0) order = memcmp(x->setting, y->setting, sizeof x->setting);
    if (order == 0)
        order = memcmp(&x->per_sample[MDOT_PHASE_FORWARD], &y->per_sample[MDOT_PHASE_FORWARD], sizeof(mdot_load));
    if (order == 0)
        order = memcmp(&x->per_step[MDOT_PHASE_FORWARD], &y->per_step[MDOT_PHASE_FORWARD], sizeof(mdot_load));
    return order;
}

static void find_kinds(const layers *l)
{
    for (uint32_t i = 0; i < l->count; i++) l->sorted[i] = &l->operators[i];
    qsort(l->sorted, l->count, sizeof(*l->sorted), compare_operators);
    for (uint32_t i = 0, kind = 0; i < l->count; i++) {
        if (i > 0 && compare_operators(&l->sorted[i - 1], &l->sorted[i]) != 0) kind++;
        l->kind[l->sorted[i] - l->operators] = kind;
    }
}

static size_t first_inside(const mdot_job_operator *op, uint32_t first)
{
    size_t index = 0;
    while (index < op->input_count && op->inputs[index] < first) index++;
    return index;
}

static bool equal_stretches(const layers *l, const fe_stretch *x, const fe_stretch *y)
{
    if (x->end - x->first != y->end - y->first) return false;
    for (uint32_t i = 0; i < x->end - x->first; i++) {
        const mdot_job_operator *p = &l->operators[x->first + i], *q = &l->operators[y->first + i];
        size_t source = first_inside(p, x->first), other_index = first_inside(q, y->first);
        if (l->kind[x->first + i] != l->kind[y->first + i]) return false;
        if (p->input_count - source != q->input_count - other_index) return false;
        for (; source < p->input_count; source++, other_index++)
            if (p->inputs[source] - x->first != q->inputs[other_index] - y->first) return false;
    }
    return true;
}

/* A hash over the kinds alone. */
static uint64_t hash_stretch(const layers *l, const fe_stretch *s)
{
    uint64_t hash = s->end - s->first;
    for (uint32_t i = s->first; i < s->end; i++)
        hash = (hash ^ l->kind[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
    return hash;
}

static int compare_hashes(const void *a, const void *b)
{
    const fe_stretch *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int compare_positions(const void *a, const void *b)
{
    const fe_stretch *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Are two of the stretches equal? On return they are sorted by position. */
static bool any_equal(const layers *l, fe_stretch *stretches, uint32_t count)
{
    bool equal = false;
    for (uint32_t i = 0; i < count; i++) stretches[i].hash = hash_stretch(l, &stretches[i]);
    qsort(stretches, count, sizeof *stretches, compare_hashes);
    for (uint32_t i = 1; i < count && !equal; i++)
        equal = stretches[i - 1].hash == stretches[i].hash && equal_stretches(l, &stretches[i - 1], &stretches[i]);
    qsort(stretches, count, sizeof *stretches, compare_positions);
    return equal;
}

static void mark_block(layers *l, const fe_stretch *s)
{
    l->marked++;
    for (uint32_t i = s->first; i < s->end; i++) l->mark[i] = l->marked;
}

/* Finds the path's index number `depth`, counted from 0. */
static bool find_index(const char *path, int depth, site *out)
{
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(part, "."), digits = strspn(part, "0123456789");
        if (length > 0 && digits == length && depth-- == 0) {
            *out = (site){.path = path, .level = (size_t)(part - path), .block = (size_t)(part - path) + length};
            return true;
        }
        part += length;
        if (*part == '.') part++;
    }
    return false;
}

static int compare_texts(const char *x, size_t x_length, const char *y, size_t y_length)
{
    if (x_length != y_length) return x_length < y_length ? -1 : 1;
    return memcmp(x, y, x_length);
}

static int compare_levels(const site *x, const site *y) { return compare_texts(x->path, x->level, y->path, y->level); }

static int compare_blocks(const site *x, const site *y)
{
    int order = compare_levels(x, y);
    return order != 0 ? order : compare_texts(x->path, x->block, y->path, y->block);
}

static int compare_sites(const void *a, const void *b)
{
    const site *x = a, *y = b;
    int order = compare_blocks(x, y);
    if (order != 0) return order;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_free_stretch(const layers *l, const fe_stretch *s)
{
    for (uint32_t i = s->first; i < s->end; i++)
        if (l->mark[i] != 0) return false;
    return true;
}

/* Lists a level's blocks with more than one operator. 0: the level has no valid blocks. */
static uint32_t list_blocks(const layers *l, const site *sites, uint32_t count, fe_stretch *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0, next_index; i < count; i = next_index) {
        for (next_index = i + 1; next_index < count && compare_blocks(&sites[i], &sites[next_index]) == 0;)
            next_index++;
        fe_stretch s = {.first = sites[i].at, .end = sites[next_index - 1].at + 1};
        if (s.end - s.first < 2) continue;
        if ((s.end - s.first) / MAX_SPARSITY > next_index - i || !is_free_stretch(l, &s)) return 0;
        out[found++] = s;
    }
    qsort(out, found, sizeof *out, compare_positions);
    for (uint32_t i = 1; i < found; i++)
        if (out[i].first < out[i - 1].end) return 0;
    return found;
}

static bool is_nameless(const layers *l, uint32_t index)
{
    return index < l->count && l->path[index] == NULL && l->mark[index] == 0;
}

/* Nameless operators behind a block extend it up to the next block. Behind the last block, they extend it as far as
 * they match the block's end before it. */
static void extend_blocks(const layers *l, fe_stretch *blocks, uint32_t count)
{
    uint32_t tail = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        tail = blocks[i].end;
        while (blocks[i].end < blocks[i + 1].first && is_nameless(l, blocks[i].end)) blocks[i].end++;
    }
    if (count < 2) return;
    fe_stretch *end = &blocks[count - 1];
    for (; tail < end[-1].end && is_nameless(l, end->end) && l->kind[tail] == l->kind[end->end]; tail++) end->end++;
}

/* Finds blocks by the index at this depth of the paths. Returns false if no path has so many indices. */
static bool find_depth(layers *l, int depth)
{
    site *sites = l->sites;
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->mark[i] != 0 || l->path[i] == NULL || !find_index(l->path[i], depth, &sites[count])) continue;
        sites[count++].at = i;
    }
    qsort(sites, count, sizeof *sites, compare_sites);
    for (uint32_t i = 0, next_index; i < count; i = next_index) {
        for (next_index = i + 1; next_index < count && compare_levels(&sites[i], &sites[next_index]) == 0;)
            next_index++;
        uint32_t found = list_blocks(l, &sites[i], next_index - i, l->blocks);
        if (!any_equal(l, l->blocks, found)) continue;
        extend_blocks(l, l->blocks, found);
        for (uint32_t k = 0; k < found; k++) mark_block(l, &l->blocks[k]);
    }
    return count > 0;
}

typedef const char *path_source(const fe_job *job, const fe_operator *op);

static void find_named(layers *l, const fe_operator *sources, path_source *path_of)
{
    for (uint32_t i = 0; i < l->count; i++) l->path[i] = path_of(l->job, &sources[i]);
    for (int depth = 0; depth < MAX_DEPTH && find_depth(l, depth);) depth++;
}

static void find_repeated(layers *l)
{
    uint32_t count = fe_find_repeats(l->job, l->operators, l->kind, l->count, l->blocks);
    for (uint32_t i = 0, next_index; i < count; i = next_index) {
        for (next_index = i + 1; next_index < count && l->blocks[next_index].hash == l->blocks[i].hash;) next_index++;
        if (!any_equal(l, &l->blocks[i], next_index - i)) continue; /* the same kinds, but different connections */
        for (uint32_t k = i; k < next_index; k++) mark_block(l, &l->blocks[k]);
    }
}

void fe_job_find_layers(const fe_job *job, const fe_operator *sources, mdot_job_operator *operators, int count)
{
    ir_arena *arena = job->graph->arena;
    layers l = {.job = job,
                .operators = operators,
                .count = (uint32_t)count,
                .kind = IR_NEW_ARRAY(arena, uint32_t, count),
                .mark = IR_NEW_ARRAY(arena, uint32_t, count),
                .path = IR_NEW_ARRAY(arena, const char *, count),
                .sorted = IR_NEW_ARRAY(arena, const mdot_job_operator *, count),
                .sites = IR_NEW_ARRAY(arena, site, count),
                .blocks = IR_NEW_ARRAY(arena, fe_stretch, count)};
    if (ir_arena_failed(arena)) return;
    find_kinds(&l);
    find_named(&l, sources, fe_operator_scope);
    if (l.marked == 0) find_named(&l, sources, fe_operator_parameter_module);
    if (l.marked == 0) find_repeated(&l);
    for (uint32_t i = 0, number = 0; i < l.count; i++) {
        if (l.mark[i] == 0) continue;
        number += i == 0 || l.mark[i] != l.mark[i - 1];
        operators[i].block = number;
    }
}
