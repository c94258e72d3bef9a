/* The mutator (gmd_mutate.h) in AFL++'s interface for custom mutators
 * (https://github.com/AFLplusplus/AFLplusplus/blob/stable/docs/custom_mutators.md):
 *   AFL_CUSTOM_MUTATOR_LIBRARY=libgmd_afl_mutator.so afl-fuzz ... */
#include "gmd_input.h"
#include "gmd_min.h"
#include "gmd_mutate.h"
#include "gmd_random.h"

#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct afl_mutator {
    gmd_random random;
    uint8_t made[GMD_INPUT_BYTES_MAX];
} afl_mutator;

EXPORTED void *afl_custom_init(void *afl, unsigned int seed);
EXPORTED size_t afl_custom_fuzz(void *data, unsigned char *buffer, size_t size, unsigned char **out,
                                unsigned char *other, size_t other_size, size_t max_size);
EXPORTED void afl_custom_deinit(void *data);

void *afl_custom_init(void *afl, unsigned int seed)
{
    (void)afl;
    afl_mutator *m = calloc(1, sizeof *m);
    if (m) {
        m->random.state = seed;
    }
    return m;
}

/* One of five comes of two inputs. */
size_t afl_custom_fuzz(void *data, unsigned char *buffer, size_t size, unsigned char **out,
                       unsigned char *other, size_t other_size, size_t max_size)
{
    afl_mutator *m = data;
    max_size = gmd_min(max_size, sizeof m->made);
    *out = m->made;
    if (other && other_size > GMD_INPUT_HEADER && gmd_random_chance(&m->random, 20)) {
        return gmd_cross(buffer, size, other, other_size, m->made, max_size,
                         gmd_random_next(&m->random));
    }
    size = gmd_min(size, max_size);
    memcpy(m->made, buffer, size);
    return gmd_mutate(m->made, size, max_size, gmd_random_next(&m->random));
}

void afl_custom_deinit(void *data)
{
    free(data);
}
