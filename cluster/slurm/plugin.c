#include "slurm/plugin.h"

const char plugin_name[] = "mdot: time limits, priorities and places by predicted training times";
const char plugin_type[] = "job_submit/mdot";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

sl_controller *sl_plugin_controller;
