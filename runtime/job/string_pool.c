/* string_pool.c — string pool of a job: holds each name of a type or module once, however many operators use it.
 *
 * A `.job` file holds a name once. If every operator held its own copy, a job could take the square of its file's
 * size. Given names are compared by address first, which reads no letter, and then by their letters. Therefore the
 * work is linear in the operators and the letters. Pooled names are in alphabetical order, so that comparing the
 * addresses of two names of one job compares the names.
 */
#include "runtime/job/string_pool.h"

#include <stdlib.h>
#include <string.h>

typedef struct text {
    const char *given, *pooled;
} text;

/* Open-addressing table of the addresses given, at most half full. */
typedef struct text_table {
    text *texts;
    uint32_t *slots; /* index of a text plus one */
    size_t count, slot_count;
} text_table;

/* The multiplier is that of the golden ratio (Knuth, The Art of Computer Programming 3, 6.4). */
static uint32_t *find_slot(const text_table *t, const char *given)
{
    uint64_t hash = (uint64_t)(uintptr_t)given * UINT64_C(0x9E3779B97F4A7C15);
    size_t slot = (hash ^ hash >> 32) & (t->slot_count - 1);
    while (t->slots[slot] != 0 && t->texts[t->slots[slot] - 1].given != given) slot = (slot + 1) & (t->slot_count - 1);
    return &t->slots[slot];
}

/* Returns false if memory runs out. */
static bool grow(text_table *t)
{
    size_t slot_count = t->slot_count > 0 ? 2 * t->slot_count : 64;
    text *texts = realloc(t->texts, slot_count / 2 * sizeof *texts);
    if (texts != NULL) t->texts = texts;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (texts == NULL || slots == NULL) {
        free(slots);
        return false;
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    for (size_t i = 0; i < t->count; i++) *find_slot(t, t->texts[i].given) = (uint32_t)i + 1;
    return true;
}

static bool add(text_table *t, const char *given)
{
    if (given == NULL) return true;
    if (2 * t->count >= t->slot_count && !grow(t)) return false;
    uint32_t *slot = find_slot(t, given);
    if (*slot != 0) return true;
    t->texts[t->count++] = (text){.given = given};
    *slot = (uint32_t)t->count;
    return true;
}

static int compare_letters(const void *a, const void *b)
{
    const text *x = *(text *const *)a, *y = *(text *const *)b;
    return strcmp(x->given, y->given);
}

/* Copies the texts into the pool, equal ones once. */
static bool copy_texts(const text_table *t, rt_string_pool *pool)
{
    text **sorted = calloc(t->count, sizeof(*sorted));
    if (sorted == NULL) return false;
    size_t bytes = 0;
    for (size_t i = 0; i < t->count; i++) {
        sorted[i] = &t->texts[i];
        bytes += strlen(t->texts[i].given) + 1;
    }
    qsort(sorted, t->count, sizeof(*sorted), compare_letters);
    pool->texts = malloc(bytes);
    for (size_t i = 0; pool->texts != NULL && i < t->count; i++) {
        bool is_equal = i > 0 && strcmp(sorted[i - 1]->given, sorted[i]->given) == 0;
        size_t length = is_equal ? 0 : strlen(sorted[i]->given) + 1;
        sorted[i]->pooled =
            is_equal ? sorted[i - 1]->pooled : memcpy(pool->texts + pool->text_bytes, sorted[i]->given, length);
        pool->text_bytes += length;
    }
    free(sorted);
    return pool->texts != NULL;
}

bool rt_pool_strings(mdot_job_operator *operators, size_t count, rt_string_pool *out_pool)
{
    text_table t = {0};
    bool allocated = true;
    for (size_t i = 0; allocated && i < count; i++)
        allocated = add(&t, operators[i].type) && add(&t, operators[i].module);
    allocated = allocated && copy_texts(&t, out_pool);
    for (size_t i = 0; allocated && i < count; i++) {
        mdot_job_operator *op = &operators[i];
        op->type = t.texts[*find_slot(&t, op->type) - 1].pooled;
        if (op->module != NULL) op->module = t.texts[*find_slot(&t, op->module) - 1].pooled;
    }
    free(t.texts);
    free(t.slots);
    return allocated;
}
