/* learned.c — runs a compiled network of one job's features. */
#include "simulator/policy/learned.h"
#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>

struct sc_learned {
    mdot_predictor *predictor;
    mdot_context *context;
};

static mdot_status ask(const sc_learned *learned, const float features[SC_FEATURES], float *out_score, mdot_error *err)
{
    static const int64_t dims[] = {1, SC_FEATURES};
    const mdot_input in = {.name = "features", .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = dims, .data = features};
    const mdot_output out = {.name = "score", .data = out_score, .size_bytes = sizeof *out_score};
    return mdot_run(learned->context, 0, &in, 1, &out, 1, err);
}

mdot_status sc_learned_open(const char *path, sc_learned **out_learned, mdot_error *err)
{
    sc_learned *learned = calloc(1, sizeof *learned);
    float score;
    if (learned == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const mdot_open_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    mdot_status status = mdot_predictor_open(path, &on_cpu, &learned->predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(learned->predictor, &learned->context, err);
    if (status == MDOT_OK) status = ask(learned, (const float[SC_FEATURES]){0}, &score, err);
    if (status == MDOT_OK)
        *out_learned = learned;
    else
        sc_learned_close(learned);
    return status;
}

void sc_learned_close(sc_learned *learned)
{
    if (learned == NULL) return;
    mdot_context_destroy(learned->context);
    mdot_predictor_close(learned->predictor);
    free(learned);
}

double sc_learned_score(const sc_learned *learned, const float features[SC_FEATURES])
{
    float score = 0;
    return ask(learned, features, &score, NULL) == MDOT_OK && isfinite(score) ? score : 0;
}
