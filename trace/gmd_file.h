/* gmd_file.h - reads a whole file, gzip or plain, within a bound. */
#ifndef GMD_FILE_H
#define GMD_FILE_H

#include "gmd_error.h"

#include <stddef.h>
#include <stdint.h>

/* What ends the error of a file that is cut off. */
#define GMD_CUT_OFF_ADVICE "; copy the file again, or let the job write it again"

/* Reads `path` ("-": standard input) into a malloc'd buffer with a terminating zero that `*size`
 * does not count; gzip data is recognised by its magic and unpacked. Refuses more than 4 GiB of
 * content, a directory, truncated or corrupt gzip data, each with a message that names the file and
 * the byte. */
gmd_status gmd_file_read(const char *path, uint8_t **data, size_t *size, gmd_error *error);

/* The same, but a regular file that is not packed may have any size that there is memory for. What
 * a pipe or gzip data will hold is not known before, so that for them the bound stands. */
gmd_status gmd_file_read_any_size(const char *path, uint8_t **data, size_t *size, gmd_error *error);

/* Unpacks gzip data that is in memory, as gmd_file_read() does that of a file. */
gmd_status gmd_file_unpack(const uint8_t *packed, size_t packed_size, const char *name,
                           uint8_t **data, size_t *size, gmd_error *error);

#endif
