/* learnt.c — runs a compiled network of one job's features. */
#include "simulator/policy/learnt.h"
#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>

struct sc_learnt {
    mdot_predictor *predictor;
    mdot_context *context;
};

static mdot_status ask(const sc_learnt *learnt, const float features[SC_FEATURES], float *out_score, mdot_error *err)
{
    static const int64_t dims[] = {1, SC_FEATURES};
    const mdot_input in = {.name = "features", .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = dims, .data = features};
    const mdot_output out = {.name = "score", .data = out_score, .size_bytes = sizeof *out_score};
    return mdot_run(learnt->context, 0, &in, 1, &out, 1, err);
}

mdot_status sc_learnt_open(const char *path, sc_learnt **out_learnt, mdot_error *err)
{
    sc_learnt *learnt = calloc(1, sizeof *learnt);
    float score;
    if (learnt == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = mdot_predictor_open(path, NULL, &learnt->predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(learnt->predictor, &learnt->context, err);
    if (status == MDOT_OK) status = ask(learnt, (const float[SC_FEATURES]){0}, &score, err);
    if (status == MDOT_OK)
        *out_learnt = learnt;
    else
        sc_learnt_close(learnt);
    return status;
}

void sc_learnt_close(sc_learnt *learnt)
{
    if (learnt == NULL) return;
    mdot_context_destroy(learnt->context);
    mdot_predictor_close(learnt->predictor);
    free(learnt);
}

double sc_learnt_score(const sc_learnt *learnt, const float features[SC_FEATURES])
{
    float score = 0;
    return ask(learnt, features, &score, NULL) == MDOT_OK && isfinite(score) ? score : 0;
}
