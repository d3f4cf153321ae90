/* cdna.h — convolutions on AMD's GPUs. */
#pragma once

#include "runtime/perf/analysis_parts.h"

/* Matmuls and attention relative to those of NVIDIA's GPUs with equal spec values: Llama 2 7B takes 1.3 times the
 * predicted step on 8 MI300X (Primus' pipelines with the least waiting, 11,400 tokens/s for a GPU). */
#define RT_CDNA_MATMULS 1.3

/* The time of a convolution's phase relative to its roofline. */
double rt_cdna_convolution(const mdot_gpu *gpu, rt_grouping grouping, mdot_phase phase);
