/* statistics.h — the statistics of the store, on plain numbers. */
#ifndef ST_STATISTICS_H
#define ST_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

/* Location and scale under Student's t distribution with four degrees of freedom. */
typedef struct st_fit {
    double mean, spread;
} st_fit;

/* Fits values by expectation maximisation, and fills a weight of 0 to 1 for each: nu / (nu + r^2), for a value that is
 * r spreads from the mean. The spread starts from 0.02, with the weight of four values, because steps repeat within
 * about 2 %: a group of three rows can therefore have an outlier. `scratch` has room for `count` values. */
st_fit st_fit_student(const double *values, size_t count, double *out_weights, double *scratch);

/* Two-sided p-values for a standard normal and Student's t. */
double st_normal_p(double z);
double st_student_p(double t, double degrees);
/* Probability of a Brownian bridge's largest excursion above d. */
double st_bridge_p(double d);

/* Largest partial sum of centred values, over the root of the sum of squares. `time` ascends; sums are taken only
 * between different times. *out_split is the index of the first value behind the largest sum. 0 if all values are 0. */
double st_largest_sum(const double *values, const int64_t *time, size_t count, size_t *out_split);

/* P-value of st_largest_sum for values of several groups, centred within each. 999 random orders keep each value in its
 * group; if none reaches the sum, the limit distribution refines the answer. group[i] is below `groups`. Returns 2 if
 * memory ran out. */
double st_change_p(const double *values, const int64_t *time, const size_t *group, size_t count, size_t groups,
                   double largest);

/* Corrects p-values by Holm's method for their number, in place. Negative values mark absent tests, and stay. Returns
 * false if memory ran out. */
int st_holm(double *p, size_t count);

#endif
