/* model.h — what predictions depend on besides job and configuration: predictor, calibration and GPU table, loaded
 * together. A reload makes a new model; requests keep the one they began with. */
#ifndef SV_MODEL_H
#define SV_MODEL_H

#include "service/gpu_table.h"
#include "service/sha256.h"

#include <stdatomic.h>

/* Files; NULL for absent ones. The default predictor is that of the installation. */
typedef struct sv_sources {
    const char *predictor, *calibration, *gpus, *shadow;
} sv_sources;

/* A predictor with contexts for several threads. */
typedef struct sv_predictor sv_predictor;

typedef struct sv_model {
    atomic_size_t references;
    uint64_t generation;              /* differs between models */
    sv_predictor *predictor, *shadow; /* shadow: NULL without one */
    mdot_calibration *calibration;    /* NULL without one */
    size_t calibrated_rows;
    char calibration_digest[SV_SHA256_TEXT]; /* of the file */
    sv_gpu_table gpus;
} sv_model;

/* Loads all sources. The caller releases the model. */
mdot_status sv_model_load(const sv_sources *sources, size_t threads, sv_model **out_model, mdot_error *err);
void sv_model_retain(sv_model *model);
void sv_model_release(sv_model *model);

/* Describes the artefact: name, compiler and assumed_torch. */
const mdot_predictor_info *sv_predictor_info(const sv_predictor *predictor);
/* Borrow a context, waiting until one is free, and give it back. */
mdot_context *sv_predictor_borrow(sv_predictor *predictor);
void sv_predictor_return(sv_predictor *predictor, mdot_context *context);
/* Borrows further contexts that are free now, at most `count`; returns the number. Some stay for small questions. */
size_t sv_predictor_borrow_more(sv_predictor *predictor, mdot_context **out_contexts, size_t count);

#endif
