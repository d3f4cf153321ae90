/* misuse.h — for the parts of test_misuse: a predictor, a context and a job for wrong calls, and rows with the tested
 * functions. */
#pragma once

#include "mdot/mdot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct misuse_row {
    const char *names; /* names of functions, separated by blanks; NULL ends a list */
    void (*misuse)(void);
} misuse_row;

/* Functions that take jobs (mdot_job.h, mdot_predict.h). */
extern const misuse_row misuse_of_jobs[];

extern mdot_predictor *misuse_predictor;
extern mdot_context *misuse_context;
extern mdot_job *misuse_job;
extern mdot_error misuse_err;

#define INVALID(call) assert_int_equal(call, MDOT_INVALID_ARGUMENT)
/* The same for a function returning a message, which must be non-empty. */
#define EXPECT_REFUSAL(call)                                                                                           \
    do {                                                                                                               \
        misuse_err = (mdot_error){0};                                                                                  \
        assert_int_equal(call, MDOT_INVALID_ARGUMENT);                                                                 \
        assert_int_equal(misuse_err.status, MDOT_INVALID_ARGUMENT);                                                    \
        assert_true(misuse_err.message[0] != '\0');                                                                    \
    } while (0)
#define BEYOND(call) assert_int_equal(call, MDOT_OUT_OF_RANGE)
