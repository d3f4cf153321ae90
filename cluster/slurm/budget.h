/* budget.h — time of predictions that each user took lately. A user beyond the limit gets no prediction until time has
 * passed, so that costly jobs of one user leave the predictions of others alone. */
#ifndef SL_BUDGET_H
#define SL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_BUDGET_USERS = 256 };

typedef struct sl_budget {
    struct {
        uint32_t user;
        double ms, at_s; /* time taken, as of the monotonic second `at_s`; 0: the row is free */
    } rows[SL_BUDGET_USERS];
} sl_budget;

/* Returns the milliseconds that count against the user at `now_s`. `per_minute_ms` of them expire in a minute. */
double sl_budget_taken_ms(const sl_budget *budget, uint32_t user, double per_minute_ms, double now_s);

/* Adds milliseconds. If all rows are taken, the user with the least time is forgotten. */
void sl_budget_charge(sl_budget *budget, uint32_t user, double ms, double per_minute_ms, double now_s);

#endif
