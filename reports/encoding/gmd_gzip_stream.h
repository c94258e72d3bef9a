/* gmd_gzip_stream.h - a stream whose bytes arrive compressed. */
#ifndef GMD_REPORTS_GZIP_STREAM_H
#define GMD_REPORTS_GZIP_STREAM_H

#include <stdio.h>

/* What is written to it goes to `to` as a gzip file, the same bytes for the same content. Takes
 * `to` over: fclose of the new stream closes both, and fails where any of it could not be written.
 * NULL: it could not be made, and `to` is closed; errno says why. */
FILE *gmd_gzip_stream(FILE *to);

#endif
