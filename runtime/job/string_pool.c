/* string_pool.c — string pool of a job: holds each name of a type or module once, however many operators use it.
 *
 * A `.job` file holds a name once. If every operator held its own copy, a job could take the square of its file's
 * size. Given names are compared by address first, which reads no letter, and then by their letters. Therefore the
 * work is linear in the operators and the letters. Pooled names are in alphabetical order, so that comparing the
 * addresses of two names of one job compares the names.
 */
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *given, *pooled;
} entry;

/* Open-addressing table of the addresses given, at most half full. */
typedef struct entry_table {
    entry *entries;
    uint32_t *slots; /* index of an entry plus one */
    size_t count, slot_count;
} entry_table;

/* The golden ratio's multiplier (Knuth, The Art of Computer Programming 3, 6.4). */
static uint32_t *find_slot(const entry_table *t, const char *given)
{
    uint64_t hash = (uint64_t)(uintptr_t)given * UINT64_C(0x9E3779B97F4A7C15);
    size_t slot = (hash ^ hash >> 32) & (t->slot_count - 1);
    while (t->slots[slot] != 0 && t->entries[t->slots[slot] - 1].given != given)
        slot = (slot + 1) & (t->slot_count - 1);
    return &t->slots[slot];
}

/* Returns false if memory runs out. */
static bool grow(entry_table *t)
{
    size_t slot_count = t->slot_count > 0 ? 2 * t->slot_count : 64;
    entry *entries = realloc(t->entries, slot_count / 2 * sizeof *entries);
    if (entries != NULL) t->entries = entries;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (entries == NULL || slots == NULL) {
        free(slots);
        return false;
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    for (size_t i = 0; i < t->count; i++) *find_slot(t, t->entries[i].given) = (uint32_t)i + 1;
    return true;
}

static bool add(entry_table *t, const char *given)
{
    if (given == NULL) return true;
    if (2 * t->count >= t->slot_count && !grow(t)) return false;
    uint32_t *slot = find_slot(t, given);
    if (*slot != 0) return true;
    t->entries[t->count++] = (entry){.given = given};
    *slot = (uint32_t)t->count;
    return true;
}

static int compare_letters(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    return strcmp(x->given, y->given);
}

/* Copies the strings into the pool, equal ones once. */
static bool copy_strings(const entry_table *t, rt_string_pool *pool)
{
    entry **sorted = calloc(t->count, sizeof(*sorted));
    if (sorted == NULL) return false;
    size_t bytes = 0;
    for (size_t i = 0; i < t->count; i++) {
        sorted[i] = &t->entries[i];
        bytes += strlen(t->entries[i].given) + 1;
    }
    qsort(sorted, t->count, sizeof(*sorted), compare_letters);
    pool->chars = malloc(bytes);
    for (size_t i = 0; pool->chars != NULL && i < t->count; i++) {
        bool is_equal = i > 0 && strcmp(sorted[i - 1]->given, sorted[i]->given) == 0;
        size_t length = is_equal ? 0 : strlen(sorted[i]->given) + 1;
        sorted[i]->pooled =
            is_equal ? sorted[i - 1]->pooled : memcpy(pool->chars + pool->bytes, sorted[i]->given, length);
        pool->bytes += length;
    }
    free(sorted);
    return pool->chars != NULL;
}

bool rt_pool_strings(mdot_job_operator *operators, size_t count, rt_string_pool *out_pool)
{
    entry_table t = {0};
    bool allocated = true;
    for (size_t i = 0; allocated && i < count; i++)
        allocated = add(&t, operators[i].type) && add(&t, operators[i].module);
    allocated = allocated && copy_strings(&t, out_pool);
    for (size_t i = 0; allocated && i < count; i++) {
        mdot_job_operator *op = &operators[i];
        op->type = t.entries[*find_slot(&t, op->type) - 1].pooled;
        if (op->module != NULL) op->module = t.entries[*find_slot(&t, op->module) - 1].pooled;
    }
    free(t.entries);
    free(t.slots);
    return allocated;
}
