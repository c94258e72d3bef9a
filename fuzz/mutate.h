#include <stddef.h>
#include <stdint.h>
size_t gmd_mutate(uint8_t *data, size_t size, size_t max_size, uint64_t seed);
size_t gmd_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out, size_t max_size, uint64_t seed);
