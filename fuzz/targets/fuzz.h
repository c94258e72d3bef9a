/* fuzz.h - what a fuzz target offers: libFuzzer's interface (https://llvm.org/docs/LibFuzzer.html),
 * which AFL++, Honggfuzz and driver_main.c call, too. */
#ifndef GMD_FUZZ_H
#define GMD_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs one input. Returns 0; a broken property aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property of the code under test, checked in every build. */
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
