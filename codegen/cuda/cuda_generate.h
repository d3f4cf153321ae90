/* cuda_generate.h — plans → CUDA C: one persistent kernel for each bucket of each entry, and the weights in its layout.
 *
 * grid_stages.c cuts a plan at its grid barriers (index_range.c tells what follows the units of length), memory_placement.c decides what lies
 * in shared memory, barriers.c where a block meets; cuda_generate.c writes the kernels, and cuda_linear.c,
 * cuda_attention.c, cuda_norm.c, cuda_nest.c and cuda_expr.c a step of them; fragments.c packs weights. The source
 * takes no header: with `prelude` before it NVRTC compiles it for any architecture; with tests/cuda_host/device.h
 * before it a C++ compiler does, and the emulator runs it.
 */
#ifndef CU_GENERATE_H
#define CU_GENERATE_H

#include "codegen/cuda/cuda_backend.h"
#include "codegen/cuda/schedule.h"

/* UNSUPPORTED names the plan kernel and the reason where a plan is not encoder-shaped; such entries stay on the CPU.
 * The program is the caller's to end with cu_program_done. */
mdot_status cu_generate(const cg_entry *entries, int entry_count, cg_compute kernel_precision,
                        const cu_schedule *schedule, ir_arena *arena, cu_program *out_program, mdot_error *err);
void cu_program_done(cu_program *program);

#endif
