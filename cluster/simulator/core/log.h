/* log.h — writes every decision as a line of CSV: time_s,decision,job_id,type,gpus,note,nodes. The last field is the
 * GPUs of each node, "a:4 b:2". */
#ifndef SC_LOG_H
#define SC_LOG_H

#include "simulator/core/policy.h"

#include <stdio.h>

#define SC_DECISION_MAP(X)                                                                                             \
    X(ARRIVE, "arrive")                                                                                                \
    X(REJECT, "reject")                                                                                                \
    X(START, "start")                                                                                                  \
    X(RESUME, "resume")                                                                                                \
    X(MOVE, "move") /* to another type or width, with no pause except the restart */                                   \
    X(PREEMPT, "preempt")                                                                                              \
    X(CUT, "cut") /* off at its time limit */                                                                          \
    X(COMPLETE, "complete")                                                                                            \
    X(NOTE, "note") /* a policy's remark on the decision */

typedef enum sc_decision {
#define SC_DECISION_ENUM(name, text) SC_DECISION_##name,
    SC_DECISION_MAP(SC_DECISION_ENUM)
#undef SC_DECISION_ENUM
} sc_decision;

/* Writes a field of CSV, quoted if needed (RFC 4180). */
void sc_log_field(FILE *file, const char *text);

/* These do nothing if `log` is NULL. */
void sc_log_begin(FILE *log);
void sc_log_job(FILE *log, const sc_view *view, sc_decision decision, uint32_t job);
void sc_log_note(FILE *log, double now_s, const char *note);

#endif
