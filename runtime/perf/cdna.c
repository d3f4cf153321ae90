/* cdna.c — convolutions on AMD's GPUs, whose training steps nobody has published.
 *
 * MIOpen's database of tuned kernels (October 2024) has 253,000 convolutions in half precision and fp32. The fastest
 * kernels of convolutions of at least 10 µs take these multiples of the roofline (geometric means): 2.8 to 7.7 for
 * dense ones, and up to 314 for the weight gradients of depthwise ones on CDNA 3, which have 14 samples. An untuned run
 * may take longer. */
#include "runtime/perf/cdna.h"

/* FP8 came with CDNA 3 */

double rt_cdna_convolution(const mdot_gpu *gpu, rt_grouping grouping, mdot_phase phase)
{
    static const double times[2][RT_GROUPING_COUNT][MDOT_PHASE_COUNT] = {
        {[RT_GROUPING_DENSE] = {2.9, 4.0, 3.6},
         [RT_GROUPING_SOME] = {4, 10, 6},
         [RT_GROUPING_DEPTHWISE] = {4.5, 4.5, 5}},
        {[RT_GROUPING_DENSE] = {5.2, 5.7, 7.7},
         [RT_GROUPING_SOME] = {9.6, 11, 126},
         [RT_GROUPING_DEPTHWISE] = {12, 32, 314}},
    };
    return times[gpu->fp8_tflops > 0][grouping][phase];
}
