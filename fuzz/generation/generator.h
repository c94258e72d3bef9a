/* generator.h - what single requests and many of one kind are made by. */
#ifndef GENERATOR_H
#define GENERATOR_H

#include "gmd_generator.h"

/* As many bytes as the profile lets a device give. */
uint64_t generator_limit(const gmd_profile *profile);
/* Whether the next request is one for the stream that is captured: drawn where there is one. */
bool generator_is_for_capture(gmd_generator *generator);

uint64_t generator_choose_size(gmd_generator *generator, uint8_t device);
uint8_t generator_choose_device(gmd_generator *generator);

/* The request for a new block, which is live from here on: fewer than GMD_LIVE_MAX are so far. */
gmd_request generator_alloc(gmd_generator *generator, uint64_t bytes, uint32_t stream,
                            uint8_t device);
/* The free of `live[which]`, which is not live any more. */
gmd_request generator_free(gmd_generator *generator, uint32_t which);

#endif
