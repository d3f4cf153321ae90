/* shadow.h — a second predictor answers beside the first; the differences are counted in GET /metrics. Nobody waits for
 * it, and no answer depends on it. */
#ifndef SV_SHADOW_H
#define SV_SHADOW_H

#include "service/service.h"
#include "service/workers.h"

typedef struct sv_shadow {
    sv_state *state;
    sv_workers *workers; /* one thread; what it has no time for is dropped and counted */
} sv_shadow;

/* For sv_state.shadow, with an sv_shadow as `user`. */
void sv_shadow_add(void *user, const char *digest, const mdot_configuration *configurations,
                   const mdot_prediction *predictions, size_t count);

#endif
