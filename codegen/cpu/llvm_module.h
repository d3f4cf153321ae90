/* llvm_module.h — plans → one LLVM module → one object: kernels, entry functions, and the table of code. */
#ifndef CG_CPU_LLVM_MODULE_H
#define CG_CPU_LLVM_MODULE_H

#include "codegen/cpu/cpu_image.h"

/* Generates images->code and sets the images' code_bytes. The code defines mdot_code, reaches weights only through
 * the call structure, and imports nothing. The targets and placements must be set. */
mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, cg_cpu_images *images,
                          mdot_error *err);

/* Scratch bytes of one call of the plan's code in a target's image: the plan's scratch, followed by the working
 * memory of the kernel that needs the most. */
int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* That working memory, which each further worker needs separately. */
int64_t cg_cpu_worker_bytes(const pl_plan *plan, const cg_cpu_target *target);

#endif
