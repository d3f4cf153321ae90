/* job_identity.c — a job's digest, and its work by class of operator.
 *
 * The digest is independent of the batch, of names, and of the phases' FLOPs and bytes, because these are per sample
 * and a reader may round them. It depends on attributes, therefore another image size or sequence length is another
 * job.
 *
 * A class is an operator's type, for convolutions together with the kernel's size and the grouping. Types are hashed
 * to RT_WORK_CLASSES classes, so that a type that mdot does not know has a class, too. Only the first letters of a type
 * count, because a file holds a type once however many operators have it, and could otherwise make the work the product
 * of both. Networks of one family divide
 * their work in nearly the same way: on timm's networks, residuals of held-out predictions have a correlation of 0.4
 * at a distance below 0.03, 0.15 at 0.05 and 0.03 beyond 0.1. The classes follow from the job alone, so that a
 * calibration needs no predictor to compare jobs.
 */
#include "runtime/job/job_model.h"
#include "runtime/job/operator_hash.h"
#include "runtime/perf/analysis_parts.h"

#include <math.h>

/* rt_hash reads whole words. Returns the hash with all bits mixed. */
static uint64_t hash_word(uint64_t hash, uint64_t word) { return rt_hash(hash, &word, sizeof word); }

enum { TYPE_LETTERS = 256 };

static uint64_t hash_type(uint64_t hash, const char *type)
{
    for (int i = 0; i < TYPE_LETTERS && type[i] != '\0'; i++) hash = hash_word(hash, (unsigned char)type[i]);
    return hash;
}

static uint64_t hash_operator(uint64_t hash, const mdot_job_operator *op)
{
    hash = hash_type(hash, op->type);
    /* Zero settings are left out, so that a setting from a later version keeps the digests in saved files. */
    for (uint64_t s = 0; s < MDOT_SETTING_COUNT; s++)
        if (op->setting[s] != 0) hash = hash_word(hash_word(hash, s + 1), (uint64_t)op->setting[s]);
    hash = hash_word(hash, 0);
    hash = hash_word(hash, (uint64_t)op->parameters);
    hash = hash_word(hash, (uint64_t)op->frozen_parameters);
    for (size_t i = 0; i < op->input_count; i++) hash = hash_word(hash, op->inputs[i]);
    return hash_word(hash, op->input_count);
}

typedef enum kernel_size { KERNEL_POINT, KERNEL_3, KERNEL_LARGE } kernel_size;
typedef enum grouping { GROUPING_NONE, GROUPING_SOME, GROUPING_DEPTHWISE } grouping;

static unsigned class_of(const mdot_job_operator *op)
{
    int64_t height = op->setting[MDOT_SETTING_KERNEL_H], width = op->setting[MDOT_SETTING_KERNEL_W];
    int64_t side = height > width ? height : width, groups = op->setting[MDOT_SETTING_GROUPS];
    kernel_size size = side <= 1 ? KERNEL_POINT : side <= 3 ? KERNEL_3 : KERNEL_LARGE;
    grouping grouped = side == 0 || groups <= 1                          ? GROUPING_NONE
                       : groups == op->setting[MDOT_SETTING_CHANNELS_IN] ? GROUPING_DEPTHWISE
                                                                         : GROUPING_SOME;
    uint64_t hash = hash_type(RT_HASH_START, op->type);
    hash = hash_word(hash_word(hash, size), grouped);
    hash ^= hash >> 29;
    return (unsigned)((hash ^ hash >> 13) % RT_WORK_CLASSES);
}

void rt_identify_job(const mdot_job *job, const double *cost, rt_job_identity *out)
{
    double work[RT_WORK_CLASSES] = {0}, sum = 0;
    uint64_t hash = RT_HASH_START;
    for (size_t i = 0; i < job->info.operator_count; i++) {
        hash = hash_operator(hash, &job->operators[i]);
        work[class_of(&job->operators[i])] += cost[i];
        sum += cost[i];
    }
    out->digest = hash != 0 ? hash : 1;
    for (int c = 0; c < RT_WORK_CLASSES; c++)
        out->share[c] = sum > 0 ? (float)(rint(work[c] / sum * RT_SHARE_UNITS) / RT_SHARE_UNITS) : 0;
}

double rt_job_distance(const float a[RT_WORK_CLASSES], const float b[RT_WORK_CLASSES])
{
    double sum = 0;
    for (int c = 0; c < RT_WORK_CLASSES; c++) sum += fabs((double)a[c] - (double)b[c]);
    return sum / 2;
}
