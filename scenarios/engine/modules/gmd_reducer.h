/* gmd_reducer.h - what torch.nn.parallel.DistributedDataParallel keeps beside a model: buckets, in
 * which gradients are reduced over all processes. Facts: reducer.cpp and parallel/distributed.py of
 * PyTorch 2.11.
 *
 * A bucket is allocated once. The first pass has one for all parameters; before the second forward
 * pass they are made anew, in the order in which the gradients arrived: the first one small, so
 * that the reduction begins early. Each gradient is copied into its bucket as soon as it is there,
 * or, `as_views`, becomes a view of it. */
#ifndef GMD_REDUCER_H
#define GMD_REDUCER_H

#include "gmd_module.h"

struct reducer;

/* Bytes at which a bucket is full; 0: PyTorch's default, 25 MiB after a first one of 1 MiB. */
struct module *nn_distributed(struct engine *engine, struct module *body, uint64_t bucket_bytes,
                              bool as_views);

/* Bucket number `index`; borrowed. NULL: there are no more. */
struct tensor *reducer_bucket(const struct reducer *reducer, size_t index);

#endif
