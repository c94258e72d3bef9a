#include "payload.h"

#include "gmd_min.h"

#include <stdint.h>

enum { GZIP_WINDOW = 15 + 16 }; /* zlib's way to say: with gzip's header */

static void put_base64(const unsigned char *bytes, size_t size, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        three |= i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < size ? bytes[i + 2] : 0;
        putc_unlocked(digits[three >> 18], out);
        putc_unlocked(digits[three >> 12 & 63], out);
        putc_unlocked(i + 1 < size ? digits[three >> 6 & 63] : '=', out);
        putc_unlocked(i + 2 < size ? digits[three & 63] : '=', out);
    }
}

static void write_packed(payload *p)
{
    put_base64(p->packed, PAYLOAD_STEP - p->zlib.avail_out, p->out);
    p->zlib.next_out = p->packed;
    p->zlib.avail_out = PAYLOAD_STEP;
}

bool payload_begin(payload *p, FILE *out)
{
    p->out = out;
    p->zlib = (z_stream){.next_out = p->packed, .avail_out = PAYLOAD_STEP};
    return deflateInit2(&p->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                        Z_DEFAULT_STRATEGY) == Z_OK;
}

void payload_add(payload *p, const void *bytes, size_t size)
{
    enum { MOST = 1 << 30 }; /* zlib counts in unsigned int */
    const unsigned char *at = bytes;
    while (size) {
        uInt step = (uInt)gmd_min(size, MOST);
        p->zlib.next_in = (Bytef *)(uintptr_t)at;
        p->zlib.avail_in = step;
        while (p->zlib.avail_in) {
            deflate(&p->zlib, Z_NO_FLUSH);
            if (p->zlib.avail_out == 0) {
                write_packed(p);
            }
        }
        at += step;
        size -= step;
    }
}

void payload_end(payload *p)
{
    while (deflate(&p->zlib, Z_FINISH) != Z_STREAM_END) {
        write_packed(p);
    }
    write_packed(p);
    deflateEnd(&p->zlib);
}
