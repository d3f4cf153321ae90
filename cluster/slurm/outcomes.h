/* outcomes.h — how long jobs ran, compared with their predictions, remembered by user. A user whose jobs run longer
 * than they stated loses priority in the same proportion. Any thread may call the functions. */
#ifndef SL_OUTCOMES_H
#define SL_OUTCOMES_H

#include "mdot/mdot_base.h"

typedef struct sl_outcomes sl_outcomes;

/* An empty record. The caller destroys it; NULL if memory ran out. */
sl_outcomes *sl_outcomes_create(void);
void sl_outcomes_destroy(sl_outcomes *outcomes);

/* Adds a job that ended at `now_s` (seconds since 1970). The seconds are above 0 and are multiplied by `gpus`, so that
 * many short honest jobs do not outweigh a long one that was understated. A job that was cut off before its end
 * (`is_complete` is false) counts only if it ran longer than predicted. */
void sl_outcomes_add(sl_outcomes *outcomes, uint32_t user, double predicted_s, double actual_s, double gpus,
                     bool is_complete, double now_s);

/* Returns the factor by which the user's jobs ran longer than predicted, at least 1. Time below a prediction does not
 * compensate for time above another. Older jobs count less; half as much after two weeks. */
double sl_outcomes_understatement(const sl_outcomes *outcomes, uint32_t user, double now_s);

/* Reads and writes the record as text. The file is replaced as a whole. MALFORMED, with the line, for other contents;
 * NOT_FOUND if there is no file. A failed read leaves the record as it was. Other calls do not wait for the file. */
mdot_status sl_outcomes_load(sl_outcomes *outcomes, const char *path, mdot_error *err);
mdot_status sl_outcomes_save(const sl_outcomes *outcomes, const char *path, mdot_error *err);

#endif
