/* weights.h — the constants of all plans in one block, as stored in the artefact's weights section. */
#ifndef CG_CPU_WEIGHTS_H
#define CG_CPU_WEIGHTS_H

#include "codegen/byte_pool.h"
#include "codegen/codegen.h"
#include "codegen/cpu/pack.h"

/* Positions of the constants that the code of one layout reads. */
typedef struct cg_placement {
    const cg_layout *layout;
    int64_t **offset;  /* [plan][buffer], plans counted through the entries; bytes from `first` */
    size_t first, end; /* range of the block that contains all of them: multiples of MDOT_ABI_ALIGNMENT */
} cg_placement;

/* Packs every weight that a kernel may read for each of the layouts, equal bytes once, and records their positions.
 * The block ends at the alignment, because vectors of the last row may extend to it, and is at least one unit long.
 * The caller frees `weights` in either case; offsets are in the arena. */
mdot_status cg_lay_out_weights(const cg_entry *entries, int entry_count, const cg_layout *const *layouts,
                               int layout_count, cg_pool *weights, cg_placement *out_placements, ir_arena *arena,
                               mdot_error *err);

#endif
