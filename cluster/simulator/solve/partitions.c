/* partitions.c — dynamic programming over the jobs with a slice, for each slice set. */
#include "simulator/solve/linear.h"

#include <math.h>
#include <string.h>

const int sc_slice_sizes[SC_SLICE_SIZES] = {1, 2, 3, 4, 7};

/* Sizes in the largest divisions, 0 behind the last. A slice of 3 sevenths takes as much memory as one of 4. */
static const int partitions[][SC_SLICES] = {
    {7},          {4, 3},          {4, 2, 1},          {4, 1, 1, 1},
    {3, 3},       {3, 2, 2},       {3, 2, 1, 1},       {3, 1, 1, 1, 1},
    {2, 2, 2, 1}, {2, 2, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1},
};

enum { PARTITIONS = sizeof partitions / sizeof *partitions };

static size_t index_of(int size)
{
    size_t i = 0;
    while (sc_slice_sizes[i] != size) i++;
    return i;
}

/* The best sum for one set of slices; out_sizes is replaced if it is above `least`. */
static double choose_in(const int *slices, size_t jobs, const double (*values)[SC_SLICE_SIZES], double minimum,
                        int *out_sizes)
{
    enum { SETS = 1 << SC_SLICES };
    double best[SC_SLICES + 1][SETS]; /* for the first slices, by job set */
    size_t taken[SC_SLICES + 1][SETS], entries = ((size_t)1 << jobs) - 1, final = 0;
    for (size_t set = 0; set <= entries; set++) best[0][set] = set == 0 ? 0 : -INFINITY;
    for (; final < SC_SLICES && slices[final] > 0; final++) {
        size_t size = index_of(slices[final]);
        for (size_t set = 0; set <= entries; set++) {
            best[final + 1][set] = best[final][set]; /* the slice stays empty */
            taken[final + 1][set] = jobs;
            for (size_t job = 0; job < jobs; job++) {
                if (!(set >> job & 1) || values[job][size] <= 0) continue;
                double sum = best[final][set & ~((size_t)1 << job)] + values[job][size];
                if (sum <= best[final + 1][set]) continue;
                best[final + 1][set] = sum;
                taken[final + 1][set] = job;
            }
        }
    }
    double sum = best[final][entries];
    for (size_t set = entries; sum > minimum && final > 0; final--) {
        size_t job = taken[final][set];
        if (job == jobs) continue;
        out_sizes[job] = slices[final - 1];
        set &= ~((size_t)1 << job);
    }
    return fmax(sum, minimum);
}

double sc_partition_choose(size_t jobs, const double (*values)[SC_SLICE_SIZES], int *out_sizes)
{
    double best = -INFINITY;
    for (size_t i = 0; i < PARTITIONS && jobs <= SC_SLICES; i++)
        best = choose_in(partitions[i], jobs, values, best, out_sizes);
    return best;
}
