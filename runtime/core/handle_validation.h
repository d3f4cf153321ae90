/* handle_validation.h — misuse of what is created and destroyed that shows, where the environment has MDOT_VALIDATE=1: each object is
 * known by its address from its making on, and every public function that works with one asks. Without it a question is
 * a load and a branch. tests/fault/test_handle_validation_calls.c finds a function that does not ask.
 *
 * What is found is INVALID_ARGUMENT with a message that names the function, and a line on stderr, since mdot_…_destroy
 * and its like return nothing. The environment is read once, when the process makes its first object. What is
 * destroyed keeps its own structure's memory, so that no other gets its address; what hangs on it goes.
 *
 * A child of fork knows what its parent knew. A context that another thread was using then stays in use there, half-way
 * through a call that nobody will end.
 */
#ifndef RT_HANDLE_VALIDATION_H
#define RT_HANDLE_VALIDATION_H

#include "mdot/mdot.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Identifier and name. */
#define RT_KIND_MAP(X)                                                                                                 \
    X(PREDICTOR, "predictor")                                                                                          \
    X(CONTEXT, "context")                                                                                              \
    X(JOB, "job")                                                                                                      \
    X(ENCODING, "encoding")                                                                                            \
    X(JOB_INPUTS, "set of a job's inputs")                                                                             \
    X(EXPLANATION, "explanation")                                                                                      \
    X(CALIBRATION, "calibration")

typedef enum rt_kind {
#define RT_KIND_ENUM(id, text) RT_##id,
    RT_KIND_MAP(RT_KIND_ENUM)
#undef RT_KIND_ENUM
} rt_kind;

typedef enum rt_validation { RT_VALIDATION_UNKNOWN, RT_VALIDATION_OFF, RT_VALIDATION_ON } rt_validation;
extern atomic_int rt_validation_state;

/* Before anything was made there is nothing to misuse. */
static inline bool rt_validates_handles(void)
{
    return atomic_load_explicit(&rt_validation_state, memory_order_relaxed) == RT_VALIDATION_ON;
}

/* An object was made. */
void rt_handle_register(const void *object, rt_kind kind);

mdot_status rt_handle_lookup(const void *object, rt_kind kind, bool begin, const char *function, mdot_error *err);
void rt_handle_end(const void *context);
bool rt_handle_remove(const void *object, rt_kind kind, const char *function);

/* Whether it is such an object and lives. */
static inline mdot_status rt_handle_check(const void *object, rt_kind kind, const char *function, mdot_error *err)
{
    return rt_validates_handles() ? rt_handle_lookup(object, kind, false, function, err) : MDOT_OK;
}

/* The same for functions that have no message to give; NULL lives, too: they have their own word on it. */
static inline bool rt_handle_is_live(const void *object, rt_kind kind, const char *function)
{
    return object == NULL || rt_handle_check(object, kind, function, NULL) == MDOT_OK;
}

/* The same of a context that this call works in, up to rt_handle_leave: no other may meanwhile. */
static inline mdot_status rt_handle_enter(const void *context, const char *function, mdot_error *err)
{
    return rt_validates_handles() ? rt_handle_lookup(context, RT_CONTEXT, true, function, err) : MDOT_OK;
}
static inline void rt_handle_leave(const void *context)
{
    if (rt_validates_handles()) rt_handle_end(context);
}

/* It is destroyed. False: it must not be, since it is none, gone already, or in use. */
static inline bool rt_handle_unregister(const void *object, rt_kind kind, const char *function)
{
    return !rt_validates_handles() || rt_handle_remove(object, kind, function);
}

#endif
