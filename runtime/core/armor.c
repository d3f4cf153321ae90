/* armor.c — see armor.h: a hash table of all objects that were made, dead ones included, behind a lock. */
#include "runtime/core/armor.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum life { NEVER, ALIVE, IN_USE, DEAD } life;

typedef struct grave {
    const void *object; /* NULL: free */
    rt_kind kind;
    life life;
} grave;

atomic_int rt_armor_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static grave *graves;
static size_t grave_count, grave_capacity; /* a power of two */

static void read_environment(void)
{
    const char *wanted = getenv("MDOT_ARMOR");
    bool on = wanted != NULL && strcmp(wanted, "") != 0 && strcmp(wanted, "0") != 0;
    atomic_store(&rt_armor_state, on ? RT_ARMOR_ON : RT_ARMOR_OFF);
}

static const char *name_of(rt_kind kind)
{
    static const char *const names[] = {"predictor", "context", "job", "encoding"};
    return names[kind];
}

/* ---- The table, under the lock ----------------------------------------------------------------------------------- */

/* The object's place, or the free one that it would get. */
static grave *find(const void *object)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * UINT64_C(0x9E3779B97F4A7C15); /* Knuth's multiplicative hash */
    size_t at = (size_t)(hash >> 32) & (grave_capacity - 1);
    while (graves[at].object != NULL && graves[at].object != object) at = (at + 1) & (grave_capacity - 1);
    return &graves[at];
}

static bool make_room(void)
{
    if (2 * grave_count < grave_capacity) return true;
    enum { FIRST = 64 };
    grave *old = graves;
    size_t old_capacity = grave_capacity;
    grave *larger = calloc(old_capacity ? 2 * old_capacity : FIRST, sizeof *larger);
    if (larger == NULL) return false;
    graves = larger;
    grave_capacity = old_capacity ? 2 * old_capacity : FIRST;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].object != NULL) *find(old[i].object) = old[i];
    free(old);
    return true;
}

static life life_of(const void *object, rt_kind kind)
{
    if (grave_capacity == 0 || object == NULL) return NEVER;
    const grave *g = find(object);
    return g->object == object && g->kind == kind ? g->life : NEVER;
}

void rt_armor_note(const void *object, rt_kind kind)
{
    pthread_once(&once, read_environment);
    if (!rt_armored()) return;
    pthread_mutex_lock(&lock);
    if (make_room()) {
        grave *g = find(object);
        grave_count += g->object == NULL;
        *g = (grave){object, kind, ALIVE};
    } else { /* what is not known could not be told from what never was */
        atomic_store(&rt_armor_state, RT_ARMOR_OFF);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static mdot_status tell(const void *object, rt_kind kind, life state, const char *function, mdot_error *err)
{
    mdot_error own;
    mdot_error *e = err != NULL ? err : &own;
    const char *what = name_of(kind);
    if (state == DEAD)
        mdot_fail(e, MDOT_INVALID_ARGUMENT, "%s: the %s %p was destroyed before", function, what, object);
    else if (state == IN_USE)
        mdot_fail(e, MDOT_INVALID_ARGUMENT, "%s: the %s %p is in use by another call: each thread takes its own",
                  function, what, object);
    else
        mdot_fail(e, MDOT_INVALID_ARGUMENT, "%s: %p is no %s", function, object, what);
    dprintf(STDERR_FILENO, "mdot: %s\n", e->message);
    return MDOT_INVALID_ARGUMENT;
}

mdot_status rt_armor_ask(const void *object, rt_kind kind, bool begin, const char *function, mdot_error *err)
{
    pthread_mutex_lock(&lock);
    life state = life_of(object, kind);
    if (begin && state == ALIVE) find(object)->life = IN_USE;
    pthread_mutex_unlock(&lock);
    bool is_right = state == ALIVE || (!begin && state == IN_USE);
    return is_right ? MDOT_OK : tell(object, kind, state, function, err);
}

void rt_armor_end(const void *context)
{
    pthread_mutex_lock(&lock);
    if (life_of(context, RT_CONTEXT) == IN_USE) find(context)->life = ALIVE;
    pthread_mutex_unlock(&lock);
}

bool rt_armor_forget(const void *object, rt_kind kind, const char *function)
{
    pthread_mutex_lock(&lock);
    life state = life_of(object, kind);
    if (state == ALIVE) find(object)->life = DEAD;
    pthread_mutex_unlock(&lock);
    if (state != ALIVE) tell(object, kind, state, function, NULL);
    return state == ALIVE;
}
