/* goodput.c — a search over batch sizes, in quarter-octave steps. */
#include "simulator/policy/adaptive.h"

#include <math.h>

static double best_batch(const sc_view *view, uint32_t job, const sc_scaling *scaling, unsigned type, int nodes,
                         int gpus, double *out_batch)
{
    double step = scaling->is_predicted ? 2 : 1.189207115002721; /* the fourth root of 2 */
    const sc_job *j = &view->workload->jobs[job];
    double done = j->work - view->states[job].remaining, best = 0, maximum = scaling->most_batch;
    if (gpus > maximum) return 0; /* each GPU needs a sample */
    for (double batch = fmax(scaling->least_batch, gpus); batch < maximum * step; batch *= step) {
        double used = fmin(batch, maximum);
        /* Predictions hold for one pass; only the least batch may take several. */
        if (scaling->is_predicted && best > 0 && used > gpus * scaling->tables[type].most_samples) break;
        double step_s = sc_scaling_model_s(scaling, type, nodes, gpus, used);
        double speed = step_s > 0 ? sc_scaling_gain(scaling, used, done) / step_s : 0;
        if (speed <= best) continue;
        best = speed;
        *out_batch = used;
    }
    return best;
}

double sc_goodput(const sc_view *view, uint32_t job, unsigned type, int gpus, bool adapts, double *out_batch)
{
    const sc_job *j = &view->workload->jobs[job];
    const sc_scaling *scaling = j->kind == SC_NONE ? NULL : view->workload->kinds[j->kind].scaling;
    int widest = view->cluster->types[type].widest_node, nodes = (gpus + widest - 1) / widest;
    *out_batch = 0;
    if (!sc_job_allows(j, gpus)) return 0;
    if (scaling == NULL) {
        double speed = sc_estimate_speed(view->estimate, job, type, gpus);
        return nodes > 1 ? speed / sc_estimate_spread(view->estimate, job, type, gpus) : speed;
    }
    double factor = view->estimate->factors[job];
    type += view->workload->first_type;
    if (adapts && j->batch == 0) return best_batch(view, job, scaling, type, nodes, gpus, out_batch) / factor;
    double batch = j->batch > 0 ? j->batch : scaling->least_batch;
    double step_s = sc_scaling_model_s(scaling, type, nodes, gpus, batch);
    double done = j->work - view->states[job].remaining;
    return step_s > 0 ? sc_scaling_gain(scaling, batch, done) / step_s / factor : 0;
}

double sc_goodput_left_s(const sc_view *view, uint32_t job, unsigned type, int gpus)
{
    const sc_job *j = &view->workload->jobs[job];
    double batch;
    if (j->kind != SC_NONE) return sc_view_planned_work(view, job) / sc_goodput(view, job, type, gpus, false, &batch);
    /* The speed at the job's own width is 1. */
    return sc_view_left_s(view, job) / sc_workload_speed(view->workload, j, type, gpus);
}

int sc_goodput_next_width(const sc_view *view, uint32_t job, unsigned type, int gpus, int maximum)
{
    const sc_job *j = &view->workload->jobs[job];
    double batch;
    double present = gpus > 0 ? sc_goodput(view, job, type, gpus, false, &batch) : 0;
    int successor = gpus + 1;
    if (j->least_gpus > 0 && successor < j->least_gpus) successor = j->least_gpus;
    if (j->most_gpus > 0 && maximum > j->most_gpus) maximum = j->most_gpus;
    if (j->kind == SC_NONE && j->least_gpus == 0) return gpus < j->gpus && j->gpus <= maximum ? j->gpus : 0;
    bool has_table = j->kind != SC_NONE && view->workload->kinds[j->kind].scaling == NULL;
    if (has_table && maximum > 1 << (SC_WIDTHS - 1)) maximum = 1 << (SC_WIDTHS - 1);
    for (; successor <= maximum; successor++)
        if (sc_goodput(view, job, type, successor, false, &batch) > present) return successor;
    return 0;
}
