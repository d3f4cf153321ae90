/* handle_validation.h — handle validation: reports misuse of handles if the environment has MDOT_VALIDATE=1. Each new
 * object is recorded by address, and every public function checks its handles. If MDOT_VALIDATE is unset, a check is a
 * load and a branch. tests/fault/test_handle_validation_calls.c finds functions without the check.
 *
 * Misuse returns INVALID_ARGUMENT with a message that names the function. It also prints a line on stderr, because
 * mdot_…_destroy and similar functions return void. The environment is read once, when the process creates its first
 * object. A destroyed object keeps the memory of its own structure, so that the address stays unused; owned memory is
 * freed.
 *
 * A child of fork inherits the parent's records. A context in use by another thread stays in use in the child, because
 * the thread to finish the call is missing there. */
#pragma once

#include "base/status.h"

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
    X(CALIBRATION, "calibration")                                                                                      \
    X(RECORDER, "recorder")                                                                                            \
    X(PLAN, "plan")

typedef enum rt_kind {
#define RT_KIND_ENUM(id, text) RT_##id,
    RT_KIND_MAP(RT_KIND_ENUM)
#undef RT_KIND_ENUM
} rt_kind;

typedef enum rt_validation { RT_VALIDATION_UNKNOWN, RT_VALIDATION_OFF, RT_VALIDATION_ON } rt_validation;
extern atomic_int rt_validation_state;

/* False until the first object is created, because before that there is no handle to misuse. */
static inline bool rt_validates_handles(void)
{
    return atomic_load_explicit(&rt_validation_state, memory_order_relaxed) == RT_VALIDATION_ON;
}

/* Records a new object. */
void rt_handle_register(const void *object, rt_kind kind);

mdot_status rt_handle_lookup(const void *object, rt_kind kind, bool begin, const char *function, mdot_error *err);
void rt_handle_end(const void *context);
bool rt_handle_remove(const void *object, rt_kind kind, const char *function);

static inline mdot_status rt_handle_check(const void *object, rt_kind kind, const char *function, mdot_error *err)
{
    return rt_validates_handles() ? rt_handle_lookup(object, kind, false, function, err) : MDOT_OK;
}

/* The same for functions that return no message. NULL passes, because those functions handle it themselves. */
static inline bool rt_handle_is_live(const void *object, rt_kind kind, const char *function)
{
    return object == NULL || rt_handle_check(object, kind, function, NULL) == MDOT_OK;
}

/* The same for a context, which the call then uses exclusively until rt_handle_leave. */
static inline mdot_status rt_handle_enter(const void *context, const char *function, mdot_error *err)
{
    return rt_validates_handles() ? rt_handle_lookup(context, RT_CONTEXT, true, function, err) : MDOT_OK;
}
static inline void rt_handle_leave(const void *context)
{
    if (rt_validates_handles()) rt_handle_end(context);
}

/* Unregisters a destroyed object. Returns false if it must not be destroyed: it is unknown, already destroyed, or in
 * use. */
static inline bool rt_handle_unregister(const void *object, rt_kind kind, const char *function)
{
    return !rt_validates_handles() || rt_handle_remove(object, kind, function);
}
