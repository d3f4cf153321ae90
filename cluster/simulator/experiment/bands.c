/* bands.c — means over windows and their confidence. Windows are the independent samples, so the seeds of one window
 * are averaged first. */
#include "simulator/experiment/experiment.h"

#include <assert.h>
#include <math.h>

enum { MAX_WINDOWS = 256 };

/* 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom. Beyond 30 the normal distribution is used, with an
 * error of at most 4 %. */
static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                   2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

ex_band ex_band_of(const double *values, size_t count)
{
    ex_band band = {.count = count};
    double squares = 0, half = 0;
    for (size_t i = 0; i < count; i++) band.mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++) squares += (values[i] - band.mean) * (values[i] - band.mean);
    if (count > 1) {
        double t = count - 1 <= 30 ? quantiles[count - 2] : 1.96;
        half = t * sqrt(squares / (double)(count - 1) / (double)count);
    }
    band.low = band.mean - half;
    band.high = band.mean + half;
    return band;
}

static ex_band band_of_cells(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm,
                             bool takes_ratio)
{
    double values[MAX_WINDOWS];
    size_t count = 0, first = trace < setup->trace_count ? trace : 0;
    size_t final = trace < setup->trace_count ? trace + 1 : setup->trace_count;
    assert(setup->windows * setup->trace_count <= MAX_WINDOWS);
    for (size_t t = first; t < final; t++) {
        for (size_t window = 0; window < setup->windows; window++) {
            const ex_cell *cell = ex_cell_at(setup, results, load, t, window, arm);
            values[count++] = takes_ratio ? log(cell->ratio) : cell->mean_jct_s / 3600;
        }
    }
    return ex_band_of(values, count);
}

ex_band ex_part_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm,
                     size_t part)
{
    double values[MAX_WINDOWS];
    assert(setup->windows <= MAX_WINDOWS);
    for (size_t window = 0; window < setup->windows; window++)
        values[window] = log(ex_cell_at(setup, results, load, trace, window, arm)->parts_jct_s[part] /
                             ex_cell_at(setup, results, load, trace, window, 0)->parts_jct_s[part]);
    ex_band band = ex_band_of(values, setup->windows);
    return (ex_band){.mean = exp(band.mean), .low = exp(band.low), .high = exp(band.high), .count = band.count};
}

ex_band ex_ratio_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm)
{
    ex_band band = band_of_cells(setup, results, load, trace, arm, true);
    return (ex_band){.mean = exp(band.mean), .low = exp(band.low), .high = exp(band.high), .count = band.count};
}

ex_band ex_hours_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm)
{
    return band_of_cells(setup, results, load, trace, arm, false);
}
