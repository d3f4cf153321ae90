/* cpu_linear_amx.h — linear with matrix tiles. */
#ifndef CG_CPU_LINEAR_AMX_H
#define CG_CPU_LINEAR_AMX_H

#include "codegen/cpu/cpu_linear_block.h"

/* All strips of the row block with matrix tiles. l->stage holds a group of CG_AMX_GROUP rows. l->copy holds the
 * whole block if `copies` is set, otherwise the last group. If `overlaps` is set, the epilogue of each
 * block runs between the products of the next. */
enum { CG_AMX_GROUP = 32 };
void cg_linear_amx(cg_emitter *e, cg_linear_block *l, bool copies, bool overlaps);

#endif
