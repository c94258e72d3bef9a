/* guard_test.h - a guard in front of the reference allocator, on a simulated device whose memory
 * holds data; what kernels do, the host does at once. */
#ifndef GMD_GUARD_TEST_H
#define GMD_GUARD_TEST_H

#include "guard.h"

#include "gmd_allocator.h"
#include "gmd_sim.h"

typedef struct guard_bench {
    guard *guard;
    gmd_allocator *allocator;
    char folder[64], report[96];
    uint32_t stack;   /* that requests get next */
    const char *text; /* of all stacks; NULL: train.py:STACK:step */
} guard_bench;

/* `text` as sanitizer_options_parse takes them; the report goes to the bench's own file. */
void bench_open(guard_bench *bench, const char *text);
void bench_close(guard_bench *bench);

void *bench_malloc(guard_bench *bench, size_t size); /* on the legacy default stream */
void bench_poke(const void *address, const char *bytes, size_t count);

/* All that was reported, as JSON lines. Valid until the next call. */
const char *bench_report(guard_bench *bench);

#endif
