/* verify_model.h — a verification in progress; private to compiler/verify_*.c. */
#pragma once

#include "compiler/compiler.h"

enum { MAX_VARIANTS = MDOT_ABI_MAX_IMAGES + 1 + CG_COMPUTES };

/* Runs on random inputs in which the code, or noise in the model, moves more values of an output by more than rounding
 * in f32. */
typedef struct compared_runs {
    int all, code_moves_more, noise_moves_more;
} compared_runs;

typedef struct code_variant { /* one per CPU image, and one per precision of the GPU */
    char name[64];            /* "x86-64-v4", "cuda:0"; followed by the precision unless it is the usual one */
    int half;                 /* index in half_types; -1: multiplies in f32 */
    mdot_predictor *predictor;
    mdot_context *context;
    mdotc_verify_row row;    /* for the current bucket */
    double share;            /* the worst error over the permitted one */
    co_worst outlier;        /* the worst run on random inputs of a quantised model: a value between two steps */
    compared_runs *compared; /* one per output */
} code_variant;

typedef struct value_counts { /* counts of reference values in one output, over all lengths in a bucket */
    int64_t count, nan, infinite;
} value_counts;

typedef struct verification {
    const ir_graph *graph;
    const ir_graph *typed; /* a copy with the types of the current bucket */
    const mdotc_verify_options *options;
    double tolerance;
    size_t entry;
    mdot_entry_info info;
    int variant_count;
    code_variant variants[MAX_VARIANTS];
    co_verify_inputs *provided; /* NULL: inputs are random */
    size_t provided_count;
    value_counts *counts; /* one per output, for the current bucket */
    bool rounds[CO_HALF_TYPES];
    double *typical;  /* one per output and precision: sensitivity, over all lengths (element_bounds.c) */
    int64_t longest;  /* length of the last bucket */
    double *steps;    /* one per output (co_find_steps), for the current bucket */
    double base;      /* the tolerance, or the rounding of the model's own types and quantised values */
    double tight;     /* the same without quantised values */
    double units;     /* of noise */
    int64_t *cursors; /* one per input: the next index to draw */
    co_style style;   /* of the current random inputs */
    bool *is_vague;   /* one per output: on some inputs of the bucket, rounding decides more than a tenth of it */
    bool saw_nan;     /* the last evaluation gave NaN */
    uint64_t random;
} verification;

void co_verify_warn(const verification *v, const char *text);
/* Does the bucket with these lengths hold the given inputs? */
bool co_verify_holds(const co_verify_inputs *provided, int64_t shortest, int64_t longest);

/* ---- verify_open.c: the artefact's code, the entry and the given inputs ------------------------------------------ */

/* Opens the artefact once for each image for this machine's CPU, and on the first supported GPU. */
mdot_status co_verify_open(verification *v, const char *path, mdot_error *err);
mdot_status co_verify_find_entry(verification *v, const char *artefact_path, mdot_error *err);
/* INVALID_ARGUMENT: the entry's inputs or outputs are not the model's. */
mdot_status co_verify_check_schema(const verification *v, const char *model_path, mdot_error *err);
/* Reads the given inputs. Lengths must lie within the entry's buckets. */
mdot_status co_verify_read_given(verification *v, ir_arena *arena, mdot_error *err);
