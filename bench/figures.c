#include "figures.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many values to leave out at either end: the largest k with P(B < k) <= 2.5 %, B binomial of
 * `count` and 1/2. */
static size_t tail_of(size_t count)
{
    double term = exp2(-(double)count), sum = 0; /* P(B = k), P(B <= k) */
    size_t k = 0;
    if (count > 1000) { /* where the terms get too small: the normal distribution */
        return (size_t)(((double)count - 1.959964 * sqrt((double)count)) / 2);
    }
    while (sum + term <= 0.025) {
        sum += term;
        term *= (double)(count - k) / (double)(k + 1);
        k++;
    }
    return k;
}

bench_estimate bench_estimate_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    size_t tail = tail_of(count);
    size_t low = tail ? tail - 1 : 0;
    return (bench_estimate){.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
                            .low = values[low],
                            .high = values[count - 1 - low]};
}
