/* calibration_prior.c — how much two steps on one GPU model have in common, before any of them is measured.
 *
 * The logarithm of measured over predicted is the sum of these terms and of noise. Each term is drawn around zero, and
 * its variance is a part of the variance that the predictor's interval states for the step:
 *
 *   site            every step of the site
 *   GPU             every step on the GPU model
 *   host            launch cost: in proportion to the share of the step that waits for the host
 *   kernels         in proportion to the rest
 *   precision       steps in half precision, or steps in full precision
 *   several GPUs    steps of several GPUs together
 *   job             steps of one job; jobs whose operators divide the work alike share a part
 *   configuration   steps of one job, the more the closer batch, layout, software, precision and other options are, and
 *                   the share of the step that waits for the host; related jobs share a part
 *
 * The parts of the site, the GPU, its kernels and its precision are smaller for a GPU model of the predictor's training
 * data, because the predictor has learned the errors that its jobs have in common. Its interval then states the errors
 * of jobs.
 *
 * A step with a wide interval and one with a narrow interval share the smaller variance (the covariance of Brownian
 * motion), so that a correction is never amplified when it is carried over.
 *
 * The parts began as those of largest marginal likelihood on half of the networks of timm (held-out families, torch
 * 1.11 and 1.12), torchvision (held-out GPUs), NeuSight, Sailor, vTrain and llm-foundry (held-out language models), and
 * PROFET. They were then rounded, and the parts of a configuration and of noise were raised until intervals covered
 * about 90 %, on all of these networks. KNOWN_GPU, RELATED, RELATED_DISTANCE, BATCH_DOUBLINGS, HOST_DISTANCE,
 * OTHER_TORCH, OUTLIER_TORCH and the layout in rt_own_correlation were later chosen on the first half alone, and judged
 * on the other half once (lab/mdot_lab/checks/calibration.py has the halves, and
 * lab/notes/calibration-accuracy.md the results). So was OTHER_MODE, from timm's networks of which both modes
 * were measured. The parts are relative to stated variances, so that another predictor needs no others.
 */
#include "runtime/predict/calibration.h"

#include <math.h>

#define SITE 0.02
#define GPU 0.03
#define HOST 0.25    /* of a step that only waits for the host */
#define KERNELS 0.02 /* of a step that never waits */
#define PRECISION 0.30
#define KNOWN_GPU 0.08 /* SITE to PRECISION on a GPU model of the training data are multiplied by this */
#define SEVERAL 0.30
#define JOB 0.10
#define RELATED 0.7           /* correlation of different jobs whose operators divide the work in the same way */
#define RELATED_DISTANCE 0.08 /* distance at which it is smaller by e */
#define CONFIGURATION 0.35
#define NEIGHBOURS 0.18     /* the part of a configuration that only neighbouring batches share */
#define BATCH_DOUBLINGS 8.0 /* doublings of the batch after which a correlation is smaller by e */
#define NEIGHBOUR_DOUBLINGS 2.0
#define HOST_DISTANCE 0.5 /* difference of host shares after which a correlation is smaller by e */
#define OTHER_LAYOUT 0.5  /* correlation between parts of configurations that differ in one respect */
#define OTHER_TORCH 0.8
#define OTHER_PRECISION 0.2
#define OTHER_GPU_COUNT 0.5
#define OTHER_OPTIONS 0.6
#define OUTLIER_TORCH 0.9 /* of an outlier's added variance */
#define OTHER_MODE 0.5    /* the same */
#define NOISE 0.035       /* of the stated variance */
/* Standard deviations of the difference between two batches of one job with equal other options: of a rerun, per square
 * root of doublings of the batch, and per difference of host shares. However wide the predictor's interval is, one
 * measured step leaves no more: other batches of PROFET, Pollux and language models are 5 to 7 % off after it. */
#define RERUN_DRIFT 0.03
#define BATCH_DRIFT 0.04
#define HOST_DRIFT 0.12
#define LEAST_NOISE 0.008 /* standard deviation; a rerun of timm's steps differs by 1.7 % with the same software */
#define IDLE 0.3          /* added noise of a predictor that is already right, at scale 1 */

/* Correlation between the effects of two jobs. Without it, networks from one family would count as independent evidence
 * for an effect of the GPU. */
static double relation(const rt_step *a, const rt_step *b)
{
    if (a->share == NULL || b->share == NULL) return 0;
    if (a->job == b->job && a->job != RT_NO_JOB) return 1;
    return RELATED * exp(-rt_job_distance(a->share, b->share) / RELATED_DISTANCE);
}

/* Covariance between the effects of two configurations. */
static double of_configuration(const rt_step *a, const rt_step *b)
{
    double doublings = fabs(log2(a->batch / b->batch)), alike = exp(-doublings / BATCH_DOUBLINGS);
    if (a->layout != b->layout) alike *= OTHER_LAYOUT;
    if (a->torch != b->torch) alike *= OTHER_TORCH;
    if (a->precision != b->precision) alike *= OTHER_PRECISION;
    if (a->gpu_count != b->gpu_count) alike *= OTHER_GPU_COUNT;
    if (a->others != b->others) alike *= OTHER_OPTIONS;
    return alike * (CONFIGURATION + NEIGHBOURS * exp(-doublings / NEIGHBOUR_DOUBLINGS));
}

/* A step that waits for the host hardly shows how fast the kernels are. For example, vTrain's GPT models of batch 1
 * wait for the host for half of the step, and take longer than predicted; at batch 8 they never wait, and take less.
 * Memory is independent of the host. */
static double of_host(const rt_step *a, const rt_step *b, rt_quantity q)
{
    return q == RT_QUANTITY_TIME ? exp(-fabs(a->host_share - b->host_share) / HOST_DISTANCE) : 1;
}

/* Variance of a step before it is scaled to 1. */
static double whole(const rt_step *s)
{
    double device = 1 - s->host_share, gpu = SITE + GPU + KERNELS * device * device + PRECISION;
    return (s->is_new_gpu ? 1 : KNOWN_GPU) * gpu + HOST * s->host_share * s->host_share +
           (s->gpu_count > 1 ? SEVERAL : 0) + JOB + CONFIGURATION + NEIGHBOURS;
}

double rt_common_terms(const rt_step *a, const rt_step *b, rt_quantity q, double general, double out[RT_TERMS])
{
    bool is_same = a == b;
    double scale = 1 / sqrt(whole(a) * whole(b)), sum = 0;
    double gpu = a->is_new_gpu && b->is_new_gpu ? general : general * KNOWN_GPU;
    double related = is_same ? 1 : relation(a, b);
    out[RT_TERM_SITE] = gpu * SITE;
    out[RT_TERM_GPU] = gpu * GPU;
    out[RT_TERM_HOST] = general * HOST * a->host_share * b->host_share;
    out[RT_TERM_KERNELS] = gpu * KERNELS * (1 - a->host_share) * (1 - b->host_share);
    bool same_class = rt_precision_class_of(a->precision) == rt_precision_class_of(b->precision);
    out[RT_TERM_PRECISION] = same_class ? gpu * PRECISION : 0;
    out[RT_TERM_SEVERAL] = a->gpu_count > 1 && b->gpu_count > 1 ? general * SEVERAL : 0;
    out[RT_TERM_JOB] = related * JOB;
    out[RT_TERM_CONFIGURATION] = related > 0 ? related * of_host(a, b, q) * of_configuration(a, b) : 0;
    for (int t = 0; t < RT_TERMS; t++) sum += out[t] *= scale;
    return sum;
}

double rt_job_correlation(const rt_step *a, const rt_step *b)
{
    return (JOB + of_configuration(a, b)) / (JOB + CONFIGURATION + NEIGHBOURS);
}

double rt_own_correlation(const rt_step *a, const rt_step *b)
{
    double alike = (a->gpu_count > 1) == (b->gpu_count > 1) ? 1 : OTHER_GPU_COUNT;
    if (a->mode != b->mode) alike *= OTHER_MODE;
    if (a->torch != b->torch) alike *= OUTLIER_TORCH;
    return a->layout == b->layout ? alike : alike * OTHER_LAYOUT;
}

double rt_drift(const rt_step *a, const rt_step *b)
{
    bool is_alike = a->job == b->job && a->job != RT_NO_JOB && a->layout == b->layout && a->torch == b->torch &&
                    a->precision == b->precision && a->gpu_count == b->gpu_count && a->others == b->others;
    if (!is_alike) return INFINITY;
    double host = HOST_DRIFT * (a->host_share - b->host_share);
    return RERUN_DRIFT * RERUN_DRIFT + BATCH_DRIFT * BATCH_DRIFT * fabs(log2(a->batch / b->batch)) + host * host;
}

double rt_noise(double deviation, double idle)
{
    return (NOISE + IDLE * idle) * deviation * deviation + LEAST_NOISE * LEAST_NOISE;
}

double rt_site_part(void) { return SITE / (SITE + GPU); }
