/* artefact_table.h — plans and the backends' images → an artefact's table (mdot_abi.h), which describes the
 * artefact. */
#ifndef CG_ARTEFACT_TABLE_H
#define CG_ARTEFACT_TABLE_H

#include "codegen/backend.h"
#include "codegen/backends.h"

/* `sets` holds the images of each of cg_backends (backends.h). The table's file_bytes and checksum are still zero. */
mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_image_set sets[CG_BACKENDS], cg_table *out_table, mdot_error *err);

#endif
