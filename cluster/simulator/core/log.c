/* log.c — writes decisions, one per line. */
#include "base/csv.h"
#include "simulator/core/simulator.h"

static const char *const texts[] = {
#define SC_DECISION_TEXT(name, text) [SC_DECISION_##name] = (text),
    SC_DECISION_MAP(SC_DECISION_TEXT)
#undef SC_DECISION_TEXT
};

void sc_log_begin(FILE *log)
{
    if (log != NULL) fputs("time_s,decision,job_id,type,gpus,note,nodes\n", log);
}

void sc_log_job(FILE *log, const sc_view *view, sc_decision decision, uint32_t job)
{
    if (log == NULL) return;
    const sc_state *state = &view->states[job];
    fprintf(log, "%.10g,%s,", view->now_s, texts[decision]);
    bs_csv_write_text(log, view->workload->jobs[job].id);
    if (state->phase != SC_RUNNING) {
        fputs(",,,,\n", log);
        return;
    }
    fputc(',', log);
    bs_csv_write_text(log, view->cluster->types[state->type].name);
    fprintf(log, ",%d,,", state->gpus);
    for (size_t i = 0; i < state->part_count; i++) {
        const sc_part *part = &view->parts[state->first_part + i];
        fprintf(log, "%s%s:%d", i > 0 ? " " : "", view->cluster->nodes[part->node].name, part->gpus);
    }
    fputc('\n', log);
}

void sc_log_note(FILE *log, double now_s, const char *note)
{
    if (log != NULL) fprintf(log, "%.10g,%s,,,,%s,\n", now_s, texts[SC_DECISION_NOTE], note);
}
