/* learned.h — a learned policy: a compiled network that scores a job; the highest score goes first. */
#ifndef SC_LEARNED_H
#define SC_LEARNED_H

#include "history/row_model.h"

/* The network's features of a job (policy/mlfs.c), and lab/mdot_lab/policy, which trains it, has the same. */
enum { SC_FEATURES = 9 };

/* Opens an artefact with an input features, f32 [1, 9], and an output score, f32 [1, 1]. */
mdot_status sc_learned_open(const char *path, hs_row_model **out_learned, mdot_error *err);

#endif
