/* cuda_kinds.h — the implementations of the kernel kinds for one block and one tile, in one file or two each: rows of
 * a schedule's table. */
#ifndef CU_KINDS_H
#define CU_KINDS_H

#include "codegen/cuda/schedule.h"

extern const cu_step_kind cu_linear_kind;     /* cuda_linear.c */
extern const cu_step_kind cu_attention_kind;  /* cuda_attention.c */
extern const cu_step_kind cu_norm_kind;       /* cuda_norm.c */
extern const cu_step_kind cu_nest_kind;       /* cuda_nest.c */
extern const cu_step_kind cu_sequential_kind; /* cuda_sequential.c, cuda_scatter.c */
extern const cu_step_kind cu_recurrence_kind; /* cuda_recurrence.c */

#endif
