/* learnt.h — a learnt policy: a compiled network that scores a job. */
#ifndef SC_LEARNT_H
#define SC_LEARNT_H

#include "mdot/mdot_base.h"

/* The network's features of a job (policy/mlfs.c), and lab/mdot_lab/policy, which trains it, has the same. */
enum { SC_FEATURES = 9 };

typedef struct sc_learnt sc_learnt;

/* Opens an artefact with an input features, f32 [1, 9], and an output score, f32 [1, 1]. The caller closes it; NULL is
 * allowed there. */
mdot_status sc_learnt_open(const char *path, sc_learnt **out_learnt, mdot_error *err);
void sc_learnt_close(sc_learnt *learnt);

/* Returns a job's score; the highest one goes first. It allocates nothing. */
double sc_learnt_score(const sc_learnt *learnt, const float features[SC_FEATURES]);

#endif
