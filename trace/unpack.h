/* unpack.h - the gzip half of gmd_file_read, with a bound that tests can lower. */
#ifndef GMD_TRACE_UNPACK_H
#define GMD_TRACE_UNPACK_H

#include "gmd_error.h"

#include <stddef.h>
#include <stdint.h>

/* Unpacks one or more gzip members into a malloc'd buffer with a terminating zero that `*size` does
 * not count. Zero bytes after the last member are padding (tapes, tar) and ignored, as gzip does.
 * `name` is for messages; they count bytes of the packed data. */
gmd_status unpack_gzip(const uint8_t *packed, size_t packed_size, size_t limit, const char *name,
                       uint8_t **data, size_t *size, gmd_error *error);

#endif
