#define _GNU_SOURCE /* fopencookie */
#include "gmd_gzip_stream.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <zlib.h>

typedef struct stream {
    FILE *to;
    gzFile packed;
} stream;

static ssize_t put(void *cookie, const char *bytes, size_t size)
{
    const stream *s = cookie;
    unsigned length = size < INT_MAX ? (unsigned)size : INT_MAX;
    return length ? gzwrite(s->packed, bytes, length) : 0; /* 0: an error, for both */
}

static int finish(void *cookie)
{
    stream *s = cookie;
    int reason = 0;
    if (gzclose(s->packed) != Z_OK) {
        reason = errno ? errno : EIO;
    }
    if (fclose(s->to) != 0 && !reason) {
        reason = errno;
    }
    free(s);
    errno = reason;
    return reason ? -1 : 0;
}

FILE *gmd_gzip_stream(FILE *to)
{
    stream *s = malloc(sizeof *s);
    int descriptor = s ? dup(fileno(to)) : -1;
    gzFile packed = descriptor >= 0 ? gzdopen(descriptor, "wb") : NULL;
    FILE *made =
        packed ? fopencookie(s, "w", (cookie_io_functions_t){.write = put, .close = finish}) : NULL;
    if (made) {
        *s = (stream){.to = to, .packed = packed};
        return made;
    }
    int reason = errno ? errno : ENOMEM;
    if (packed) {
        gzclose(packed);
    } else if (descriptor >= 0) {
        close(descriptor);
    }
    free(s);
    fclose(to);
    errno = reason;
    return NULL;
}
