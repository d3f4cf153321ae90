/* partitions.h — divides a GPU into slices (NVIDIA's Multi-Instance GPU) for the jobs on it, with the largest sum of
 * values.
 *
 * The slices of an A100 are 1, 2, 3, 4 or 7 sevenths. A division is valid if it is a part of one of the placements
 * in NVIDIA's MIG User Guide. Those have twelve different sets of sizes, because the order of slices does not matter
 * here.
 */
#ifndef SC_PARTITIONS_H
#define SC_PARTITIONS_H

#include "mdot/mdot_base.h"

enum { SC_SLICES = 7, SC_SLICE_SIZES = 5 };

/* 1, 2, 3, 4 and 7. */
extern const int sc_slice_sizes[SC_SLICE_SIZES];

/* Returns whether slices of these sizes fit one GPU together. */
bool sc_partition_holds(const int *sizes, size_t count);

/* Gives each of at most 7 jobs a slice. values[job][i] is its value on a slice of sc_slice_sizes[i]; 0 or less: it
 * cannot run there. Returns the largest sum of values, or -INFINITY if the GPU cannot hold all jobs. */
double sc_partition_choose(size_t jobs, const double (*values)[SC_SLICE_SIZES], int *out_sizes);

#endif
