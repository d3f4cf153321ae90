/* learned.h — a learned policy: a compiled network that scores a job. */
#ifndef SC_LEARNED_H
#define SC_LEARNED_H

#include "mdot/mdot_base.h"

/* The network's features of a job (policy/mlfs.c), and lab/mdot_lab/policy, which trains it, has the same. */
enum { SC_FEATURES = 9 };

typedef struct sc_learned sc_learned;

/* Opens an artefact with an input features, f32 [1, 9], and an output score, f32 [1, 1]. The caller closes it; NULL is
 * allowed there. */
mdot_status sc_learned_open(const char *path, sc_learned **out_learned, mdot_error *err);
void sc_learned_close(sc_learned *learned);

/* Returns a job's score; the highest one goes first. It allocates nothing. */
double sc_learned_score(const sc_learned *learned, const float features[SC_FEATURES]);

#endif
