/* cdna.h — convolutions on AMD's GPUs. */
#pragma once

#include "runtime/perf/analysis_parts.h"

/* The time of a convolution's phase relative to its roofline. */
double rt_cdna_convolution(const mdot_gpu *gpu, rt_grouping grouping, mdot_phase phase);
