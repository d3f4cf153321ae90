/* log.c — decisions, a line each. */
#include "examples/scheduler/core/log.h"

static const char *const texts[] = {
#define SC_DECISION_TEXT(name, text) [SC_DECISION_##name] = (text),
    SC_DECISION_MAP(SC_DECISION_TEXT)
#undef SC_DECISION_TEXT
};

void sc_log_begin(FILE *log)
{
    if (log != NULL) fputs("time_s,decision,job_id,type,gpus,note\n", log);
}

void sc_log_job(FILE *log, const sc_view *view, sc_decision decision, uint32_t job)
{
    if (log == NULL) return;
    const sc_state *state = &view->states[job];
    fprintf(log, "%.10g,%s,%s,", view->now_s, texts[decision], view->workload->jobs[job].id);
    if (state->phase == SC_RUNNING)
        fprintf(log, "%s,%d,\n", view->cluster->types[state->type].name, state->gpus);
    else
        fputs(",,\n", log);
}

void sc_log_note(FILE *log, double now_s, const char *note)
{
    if (log != NULL) fprintf(log, "%.10g,%s,,,,%s\n", now_s, texts[SC_DECISION_NOTE], note);
}
