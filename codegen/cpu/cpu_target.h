/* cpu_target.h — the ISA levels as data: vector width, register tile, packing of weights, LLVM's name of the CPU. */
#ifndef CG_CPU_TARGET_H
#define CG_CPU_TARGET_H

#include "codegen/codegen.h"
#include "codegen/cpu/pack.h"
#include "codegen/machine.h"

/* The factors that a target's matrix kernels (pl_is_matrix) multiply. Sums and all other operations are always f32. */
typedef enum cg_matmul_kind {
    CG_MATMUL_F32,          /* f32 by f32 */
    CG_MATMUL_BF16_WEIGHTS, /* f32 by f32; weights are bf16 in memory and converted to f32 before the multiplication */
    CG_MATMUL_BF16,         /* bf16 by bf16, two products per lane: vdpbf16ps, bfdot */
    CG_MATMUL_AMX,          /* bf16 by bf16, tiles of 16 rows: AMX */
} cg_matmul_kind;

enum { CG_MAX_TILE_ROWS = 8, CG_MAX_TILE_VECTORS = 4 };

/* One ISA level in one precision. A register tile is tile_rows × tile_vectors accumulators, within the maxima above. */
typedef struct cg_cpu_target {
    mdot_cpu_isa isa;
    cg_compute kernel_precision;
    const char *name;   /* for example "x86-64-v3" */
    const char *suffix; /* unique suffix of symbol names, for example "v3" */
    cg_matmul_kind matmul;
    bool use_generic_vectors;          /* bf16 dot products use instructions that every level has; for tests */
    const cg_machine *machine;         /* machine of the module, shared by every level of an architecture */
    const cg_layout *layout;           /* layouts in which its linear kernels read constants */
    const char *cpu, *features, *tune; /* attributes of each function */
    int lanes;                         /* f32 elements per vector */
    int tile_rows, tile_vectors;
    bool permute16;  /* a sixteen-entry table look-up is one instruction */
    bool by_element; /* instructions multiply a vector by one element of another: fmla by element */
} cg_cpu_target;

/* Returns NULL if the target is unknown. */
const cg_cpu_target *cg_cpu_target_find(mdot_cpu_isa isa, cg_compute kernel_precision);

/* The section of a target's functions in the object, for example ".text.v3". */
enum { CG_SECTION_NAME_BYTES = 32 };
void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES]);

extern const cg_machine cg_machine_x86_64, cg_machine_aarch64;

#endif
