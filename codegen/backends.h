/* backends.h — the list of backends. compiler/ and the artefact writer loop over it and refer to none by name. */
#ifndef CG_BACKENDS_H
#define CG_BACKENDS_H

#include "codegen/backend.h"

enum { CG_BACKENDS = 2 };
extern const cg_backend *const cg_backends[CG_BACKENDS]; /* ascending by kind */

#endif
