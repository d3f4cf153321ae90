/* loss_curves.c — curves of jobs, and their fits. */
#include "simulator/policy/loss_curves.h"
#include "mdot/mdot.h"

#include <math.h>

#define TARGET .1
#define NOISE .02
#define POINTS_PER_WORK 200.
enum { MOST_POINTS = 200, LEAST_POINTS = 10 };

double sc_loss_at(uint32_t job, double part)
{
    uint64_t seed = job;
    double exponent = .5 * pow(4, sc_random_unit(&seed)), shift = .05;
    double start = pow(shift, -exponent), end = pow(1 + shift, -exponent);
    return TARGET + (1 - TARGET) * (pow(part + shift, -exponent) - end) / (start - end);
}

static void fit(uint32_t job, double part, sc_loss_fit *out_fit)
{
    double steps[MOST_POINTS], losses[MOST_POINTS];
    size_t count = (size_t)fmin(MOST_POINTS, part * POINTS_PER_WORK);
    uint64_t seed = job + 1;
    mdot_convergence c = {.struct_size = sizeof c};
    for (size_t i = 0; i < count; i++) {
        steps[i] = (double)(i + 1);
        losses[i] = sc_loss_at(job, steps[i] / POINTS_PER_WORK) * (1 + NOISE * sc_random_normal(&seed));
    }
    out_fit->fitted_part = part;
    if (count < LEAST_POINTS || mdot_steps_to_loss(steps, losses, count, TARGET, &c, NULL) != MDOT_OK) return;
    double predicted = isfinite(c.steps) ? c.steps : 10 * (double)count; /* so far, the fits never reach the target */
    out_fit->total_part = fmin(10, predicted / POINTS_PER_WORK);
}

double sc_loss_left_ratio(const sc_view *view, uint32_t job, sc_loss_fit *io_fit)
{
    double work = view->workload->jobs[job].work * sc_workload_planned(&view->workload->jobs[job]);
    double left = sc_view_planned_work(view, job) / work, part = 1 - left;
    if (part * POINTS_PER_WORK >= LEAST_POINTS && part >= 1.1 * io_fit->fitted_part) fit(job, part, io_fit);
    if (io_fit->total_part == 0 || left <= 0) return 1;
    return fmax(.01, io_fit->total_part - part) / left;
}
