/* gpus.h — the GPUs of gpus.def by name, and the table's columns. */
#pragma once

#include "base/struct_version.h"
#include "mdot/mdot_configuration.h"

/* The columns of gpus.def, in the order of the predictor input `gpu`: append only. */
enum {
#define COLUMN(field, ...) RT_GPU_##field,
#include "runtime/job/gpus.def"
    RT_GPU_NUMBERS
};

extern const bs_struct_version rt_gpu_type;

/* The table's row, borrowed. The message of INVALID_ARGUMENT lists the known names. */
mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err);
/* Returns INVALID_ARGUMENT for an unprintable name, because text that contains it would be read as another name.
 * NULL is valid. */
mdot_status rt_gpu_check_name(const char *name, mdot_error *err);

/* By its name: AMD's GPUs for data centres are MI100, MI250 and so on. */
bool rt_gpu_is_from_amd(const mdot_gpu *gpu);
