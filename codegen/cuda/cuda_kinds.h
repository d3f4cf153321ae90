/* cuda_kinds.h — the implementations of the kernel kinds for one block and one tile, one file each: rows of a
 * schedule's table. */
#ifndef CU_KINDS_H
#define CU_KINDS_H

#include "codegen/cuda/schedule.h"

extern const cu_step_kind cu_linear_kind;    /* cuda_linear.c */
extern const cu_step_kind cu_attention_kind; /* cuda_attention.c */
extern const cu_step_kind cu_norm_kind;      /* cuda_norm.c */
extern const cu_step_kind cu_nest_kind;      /* cuda_nest.c */

#endif
