/* device_costs.h - what calls of a real device take: an estimate.
 *
 * Measured on an NVIDIA H100 80GB HBM3 with CUDA 13, medians of calls of 2 MiB to 4 GiB, in a
 * process that does nothing else: a part of its own for each call, and one that grows with the
 * bytes. That cudaFree waits for the work of the device is not in it. */
#ifndef GMD_ADVICE_DEVICE_COSTS_H
#define GMD_ADVICE_DEVICE_COSTS_H

#include "gmd_sim.h"

/* Nanoseconds of one call that was seen on the simulated device. */
double device_cost_ns(const gmd_sim_call *call);

#endif
