/* vectorise.h — selects the loop of a nest that becomes vectors. */
#ifndef CG_CPU_VECTORISE_H
#define CG_CPU_VECTORISE_H

#include "codegen/cpu/emit.h"

typedef struct cg_vectorisation {
    int loop;      /* -1: scalar code; below loop_count an output's loop, otherwise a reduction loop */
    int lanes;     /* 1 in scalar code */
    int block;     /* vectors that a reduction keeps at once, to hide latency: a power of two */
    bool in_place; /* a store's buffer is also loaded, so each point must be computed only once */
} cg_vectorisation;

/* Is a buffer that the nest stores to also loaded by it? Then each point must be computed only once. */
bool cg_is_in_place(const pl_nest *nest);

/* Do all stores write adjacent elements along the loop? */
bool cg_stores_along(const pl_nest *nest, int loop);

cg_vectorisation cg_choose_vectorisation(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target);

#endif
