#include "slurm/user_records.h"

#include <math.h>

static double left_ms(const sl_budget *b, int row, double per_minute_ms, double now_s)
{
    return fmax(b->rows[row].ms - per_minute_ms * (now_s - b->rows[row].at_s) / 60, 0);
}

double sl_budget_taken_ms(const sl_budget *b, uint32_t user, double per_minute_ms, double now_s)
{
    for (int i = 0; i < SL_BUDGET_USERS; i++)
        if (b->rows[i].user == user && b->rows[i].ms > 0) return left_ms(b, i, per_minute_ms, now_s);
    return 0;
}

void sl_budget_charge(sl_budget *b, uint32_t user, double ms, double per_minute_ms, double now_s)
{
    int row = 0;
    for (int i = 0; i < SL_BUDGET_USERS; i++) {
        if (b->rows[i].user == user && b->rows[i].ms > 0) {
            row = i;
            break;
        }
        if (left_ms(b, i, per_minute_ms, now_s) < left_ms(b, row, per_minute_ms, now_s)) row = i;
    }
    if (b->rows[row].user != user) b->rows[row].ms = 0;
    b->rows[row].ms = left_ms(b, row, per_minute_ms, now_s) + ms;
    b->rows[row].user = user;
    b->rows[row].at_s = now_s;
}
