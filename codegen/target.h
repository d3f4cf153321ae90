/* target.h — lists of targets, and the names of precisions. */
#ifndef CG_TARGET_H
#define CG_TARGET_H

#include "codegen/codegen.h"

/* Inserts a target into a list of `*count` with capacity MDOT_ABI_MAX_IMAGES. It goes after lesser targets and after
 * those that differ only in precision. A duplicate is ignored. Returns INVALID_ARGUMENT if the list is full. */
mdot_status cg_add_target(cg_target *targets, int *count, cg_target target, mdot_error *err);
/* The options' targets of one kind, which are consecutive. */
const cg_target *cg_targets_of(const cg_options *options, mdot_image_kind kind, int *out_count);

const char *cg_compute_name(cg_compute kernel_precision); /* "fp32", "bf16", "fp16": mdot_abi_image.compute_at */

#endif
