/* job_model.h — a job in memory, shared by the files that make, read and predict jobs. Private to runtime/job. */
#ifndef RT_JOB_MODEL_H
#define RT_JOB_MODEL_H

#include "mdot/mdot.h"

#include <string.h>

/* Operators of one type number with equal settings, loads and parameters. */
typedef struct rt_class {
    uint32_t first, count; /* the first of them; how many there are */
} rt_class;

/* Bytes that one training step needs beside the weights, their gradients and the optimizer's state. */
typedef struct rt_job_memory {
    double activation_bytes;      /* for each sample, at the peak, with fp32 activations */
    double half_activation_bytes; /* the same under automatic mixed precision, */
    double half_weight_bytes;     /* which also keeps these copies of weights */
} rt_job_memory;

struct mdot_job {
    mdot_job_info info;
    mdot_job_operator *operators; /* their texts and inputs point into the two arrays below */
    uint32_t *inputs;
    char *texts;
    /* What predictions need and no configuration changes, worked out once. */
    bool has_unnumbered;     /* a type that has no number */
    uint32_t highest_number; /* of a type */
    double *costs;           /* of one operator, to compare operators with each other */
    rt_class *classes;       /* in the order of their first operators */
    size_t class_count;
    rt_job_memory memory;
};

/* FNV-1a (Fowler, Noll, Vo), 64 bits, a word at a time, the upper half folded in since multiplying moves bits up. */
#define RT_HASH_START UINT64_C(14695981039346656037)
static inline uint64_t rt_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    return hash;
}

/* The largest whole number up to which a double holds every one. */
#define RT_JOB_MAX_COUNT 9007199254740992.0 /* 2^53 */
/* Of type numbers: predictors hold a row for each. */
enum { RT_JOB_MAX_TYPE = 65535 };

/* classes.c: fills what predictions need but `memory` from the operators. False: memory ran out. */
bool rt_job_classify(mdot_job *job);

/* blocks.c: fills how many blocks are equal to each operator's. False: memory ran out. */
bool rt_job_compare_blocks(mdot_job *job);

/* memory.c: fills `memory` from the operators. False: memory ran out. */
bool rt_job_measure_memory(mdot_job *job);
/* What a step takes at its peak; at most UINT64_MAX. */
uint64_t rt_peak_memory_bytes(const mdot_job *job, const mdot_configuration *configuration);
/* Whether that many bytes fit what a training job can have of a GPU's memory. */
bool rt_fits(uint64_t peak_memory_bytes, double memory_gib);

#endif
