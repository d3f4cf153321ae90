/* cuda_generate.h — plans → CUDA C: one persistent kernel for each bucket of each entry, and the weights in its layout.
 *
 * grid_stages.c splits a plan at its grid barriers (index_range.c finds the indices that follow the units of length).
 * memory_placement.c selects the buffers in shared memory, and barriers.c places the block barriers. cuda_generate.c
 * prints the kernels; cuda_linear.c, cuda_attention.c, cuda_norm.c, cuda_nest.c and cuda_expr.c print their steps;
 * fragments.c packs weights. The source includes no header. With `prelude` before it, NVRTC compiles it for any
 * architecture. With tests/cuda_host/device.h before it, a C++ compiler does, and the emulator runs it.
 */
#ifndef CU_GENERATE_H
#define CU_GENERATE_H

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/schedule.h"

/* Returns UNSUPPORTED with the plan kernel and the reason if a plan is not encoder-shaped; such entries run on the
 * CPU only. The caller frees the program with cu_program_done. */
mdot_status cu_generate(const cg_entry *entries, int entry_count, cg_compute kernel_precision,
                        const cu_schedule *schedule, ir_arena *arena, cu_program *out_program, mdot_error *err);
void cu_program_done(cu_program *program);

#endif
