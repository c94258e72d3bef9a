/* figures.h - what is said of several rounds: the median, and an interval that holds the true one
 * in 95 of 100 cases. */
#ifndef GMD_BENCH_FIGURES_H
#define GMD_BENCH_FIGURES_H

#include <stddef.h>

typedef struct bench_estimate {
    double median, low, high;
} bench_estimate;

/* The interval comes from order statistics: how many of `count` values lie under the median is
 * binomial, whatever their distribution. With fewer than 6 values it is all of their range, which
 * is then less sure. Sorts `values`. `count` is not 0. */
bench_estimate bench_estimate_of(double *values, size_t count);

#endif
