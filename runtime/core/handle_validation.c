/* handle_validation.c — see handle_validation.h: a hash table of all objects ever created, including destroyed ones,
 * behind a lock.
 *
 * A child of fork may find the table in the middle of another thread's change (lock.h). Therefore each change takes
 * effect with one final store of a word.
 */
#include "runtime/core/handle_validation.h"
#include "runtime/core/lock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum life { NEVER, ALIVE, IN_USE, DEAD } life;

typedef struct object_entry {
    const void *object; /* NULL: free */
    rt_kind kind;
    life life;
} object_entry;

atomic_int rt_validation_state;

typedef struct object_table {
    size_t count, capacity; /* capacity is a power of two */
    object_entry entries[];
} object_table;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rt_lock lock;
static object_table *objects; /* NULL until the first object is created */

static void read_environment(void)
{
    const char *wanted = secure_getenv("MDOT_VALIDATE");
    bool enabled = wanted != NULL && strcmp(wanted, "") != 0 && strcmp(wanted, "0") != 0;
    atomic_store(&rt_validation_state, enabled ? RT_VALIDATION_ON : RT_VALIDATION_OFF);
}

static const char *name_of(rt_kind kind)
{
    static const char *const names[] = {
#define RT_KIND_NAME(id, text) text,
        RT_KIND_MAP(RT_KIND_NAME)
#undef RT_KIND_NAME
    };
    return names[kind];
}

/* The object's entry, or the free entry that it would get. */
static object_entry *find(object_table *table, const void *object)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * UINT64_C(0x9E3779B97F4A7C15); /* Knuth's multiplicative hash */
    size_t index = (size_t)(hash >> 32) & (table->capacity - 1);
    while (table->entries[index].object != NULL && table->entries[index].object != object)
        index = (index + 1) & (table->capacity - 1);
    return &table->entries[index];
}

static bool reserve_slot(void)
{
    if (objects != NULL && 2 * objects->count < objects->capacity) return true;
    enum { FIRST = 64 };
    object_table *old = objects;
    size_t capacity = old != NULL ? 2 * old->capacity : FIRST;
    object_table *larger = calloc(1, sizeof *larger + capacity * sizeof larger->entries[0]);
    if (larger == NULL) return false;
    larger->capacity = capacity;
    for (size_t i = 0; old != NULL && i < old->capacity; i++) {
        if (old->entries[i].object == NULL) continue;
        *find(larger, old->entries[i].object) = old->entries[i];
        larger->count++;
    }
    atomic_thread_fence(memory_order_release);
    objects = larger;
    free(old);
    return true;
}

static void set_live(const void *object, rt_kind kind)
{
    object_entry *entry = find(objects, object);
    if (entry->object == NULL) objects->count++;
    entry->kind = kind;
    entry->life = ALIVE;
    atomic_thread_fence(memory_order_release);
    entry->object = object;
}

static life life_of(const void *object, rt_kind kind)
{
    if (objects == NULL || object == NULL) return NEVER;
    const object_entry *entry = find(objects, object);
    return entry->object == object && entry->kind == kind ? entry->life : NEVER;
}

void rt_handle_register(const void *object, rt_kind kind)
{
    pthread_once(&once, read_environment);
    if (!rt_validates_handles()) return;
    rt_lock_take(&lock);
    if (reserve_slot())
        set_live(object, kind);
    else /* an unrecorded object would look like one that never existed, so validation is switched off */
        atomic_store(&rt_validation_state, RT_VALIDATION_OFF);
    rt_lock_give(&lock);
}

static mdot_status report(const void *object, rt_kind kind, life state, const char *function, mdot_error *err)
{
    mdot_error fallback;
    mdot_error *e = err != NULL ? err : &fallback;
    const char *what = name_of(kind);
    if (state == DEAD)
        BS_INVALID(e, "%s: the %s %p was destroyed before this call", function, what, object);
    else if (state == IN_USE)
        BS_INVALID(e, "%s: the %s %p is in use by another call: create one for each thread", function, what, object);
    else
        BS_INVALID(e, "%s: %p is an invalid handle; expected: %s", function, object, what);
    dprintf(STDERR_FILENO, "mdot: %s\n", e->message);
    return MDOT_INVALID_ARGUMENT;
}

mdot_status rt_handle_lookup(const void *object, rt_kind kind, bool begin, const char *function, mdot_error *err)
{
    rt_lock_take(&lock);
    life state = life_of(object, kind);
    if (begin && state == ALIVE) find(objects, object)->life = IN_USE;
    rt_lock_give(&lock);
    bool is_right = state == ALIVE || (!begin && state == IN_USE);
    return is_right ? MDOT_OK : report(object, kind, state, function, err);
}

void rt_handle_end(const void *context)
{
    rt_lock_take(&lock);
    if (life_of(context, RT_CONTEXT) == IN_USE) find(objects, context)->life = ALIVE;
    rt_lock_give(&lock);
}

bool rt_handle_remove(const void *object, rt_kind kind, const char *function)
{
    rt_lock_take(&lock);
    life state = life_of(object, kind);
    if (state == ALIVE) find(objects, object)->life = DEAD;
    rt_lock_give(&lock);
    if (state != ALIVE) report(object, kind, state, function, NULL);
    return state == ALIVE;
}
