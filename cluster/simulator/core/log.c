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
    if (log != NULL) fputs("time_s,decision,job_id,type,gpus,note,nodes,batch\n", log);
}

/* Samples of a step on the job's present GPUs; 0: unknown. */
static double batch_of(const sc_workload *workload, const sc_job *job, const sc_state *state)
{
    const sc_kind *kind = job->kind == SC_NONE ? NULL : &workload->kinds[job->kind];
    unsigned width = sc_speed_index(state->gpus);
    if (kind == NULL || state->batch > 0) return kind == NULL ? 0 : state->batch;
    if (kind->scaling != NULL) return job->batch > 0 ? job->batch : kind->scaling->least_batch;
    return width < SC_SPEEDS ? kind->step_samples[width] : 0;
}

void sc_log_job(FILE *log, const sc_view *view, sc_decision decision, uint32_t job)
{
    if (log == NULL) return;
    const sc_state *state = &view->states[job];
    fprintf(log, "%.10g,%s,", view->now_s, texts[decision]);
    bs_csv_write_text(log, view->workload->jobs[job].id);
    if (state->phase != SC_RUNNING) {
        fputs(",,,,,\n", log);
        return;
    }
    fputc(',', log);
    bs_csv_write_text(log, view->cluster->types[state->type].name);
    fprintf(log, ",%d,", state->gpus);
    if (state->clock > 0 && state->clock < 1) fprintf(log, "clock %.2g", state->clock);
    fputc(',', log);
    for (size_t i = 0; i < state->part_count; i++) {
        const sc_part *part = &view->parts[state->first_part + i];
        fprintf(log, "%s%s:%d", i > 0 ? " " : "", view->cluster->nodes[part->node].name, part->gpus);
    }
    double batch = batch_of(view->workload, &view->workload->jobs[job], state);
    if (batch > 0)
        fprintf(log, ",%.10g\n", batch);
    else
        fputs(",\n", log);
}

void sc_log_note(FILE *log, double now_s, const char *note)
{
    if (log != NULL) fprintf(log, "%.10g,%s,,,,%s,,\n", now_s, texts[SC_DECISION_NOTE], note);
}
