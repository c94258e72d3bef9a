#include "gmd_file.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CONTENT_LIMIT ((size_t)4 << 30)
#define FIRST_BYTES   ((size_t)64 << 10)

/* A growing buffer that keeps one byte for the terminating zero. It may hold one byte more than the
 * limit: that tells content of exactly the limit from content that is larger. */
typedef struct buffer {
    uint8_t *data;
    size_t size, capacity, limit;
} buffer;

static gmd_status check_limit(const buffer *b, const char *name, gmd_error *error)
{
    if (b->size <= b->limit) {
        return GMD_OK;
    }
    return gmd_fail(error, GMD_BAD_INPUT, "%s: expected at most %zu bytes of content, found more",
                    name, b->limit);
}

static gmd_status fail_memory(size_t bytes, const char *name, gmd_error *error)
{
    gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory for %zu bytes", name, bytes);
    return GMD_NO_MEMORY;
}

/* Makes room for at least one byte more. */
static gmd_status buffer_reserve(buffer *b, const char *name, gmd_error *error)
{
    gmd_status status = check_limit(b, name, error);
    if (status != GMD_OK) {
        return status;
    }
    size_t needed = b->size + 2;
    if (!GMD_GROW(&b->data, &b->capacity, gmd_max(needed, FIRST_BYTES))) {
        return fail_memory(needed, name, error);
    }
    return GMD_OK;
}

/* How much may be added now. */
static size_t buffer_room(const buffer *b)
{
    size_t most = b->capacity - 1 < b->limit + 1 ? b->capacity - 1 : b->limit + 1;
    return most - b->size;
}

/* --- gzip -------------------------------------------------------------------------------- */

typedef struct unpacker {
    z_stream zlib;
    const uint8_t *packed;
    size_t packed_size, at; /* `at`: first packed byte that zlib was not given yet */
    const char *name;
    buffer out;
    gmd_error *error;
} unpacker;

static size_t packed_position(const unpacker *u)
{
    return u->at - u->zlib.avail_in;
}

static void feed(unpacker *u)
{
    enum { STEP = 1 << 30 }; /* zlib counts in unsigned int */
    size_t left = u->packed_size - u->at;
    if (u->zlib.avail_in == 0 && left) {
        u->zlib.next_in = (Bytef *)(uintptr_t)(u->packed + u->at);
        u->zlib.avail_in = (uInt)gmd_min(left, STEP);
        u->at += u->zlib.avail_in;
    }
}

static gmd_status fail_unpack(unpacker *u, int code)
{
    size_t at = packed_position(u);
    if (code == Z_MEM_ERROR) {
        return gmd_fail(u->error, GMD_NO_MEMORY, "%s: no host memory to unpack it", u->name);
    }
    if (code == Z_BUF_ERROR) {
        return gmd_fail(u->error, GMD_BAD_INPUT,
                        "%s: is cut off: byte %zu: the gzip data ends here, expected "
                        "more" GMD_CUT_OFF_ADVICE,
                        u->name, at);
    }
    return gmd_fail(u->error, GMD_BAD_INPUT, "%s: byte %zu: corrupt gzip data: %s", u->name, at,
                    u->zlib.msg ? u->zlib.msg : "expected a valid stream");
}

/* The last four bytes say how much the last member holds, modulo 2^32: a hint, which spares the
 * buffer its growth. Deflate packs 1,032 bytes in one at most. */
static gmd_status reserve_claimed(unpacker *u)
{
    enum { LEAST_MEMBER = 18, MOST_RATIO = 1032 };
    if (u->packed_size < LEAST_MEMBER) {
        return GMD_OK;
    }
    const uint8_t *end = u->packed + u->packed_size;
    size_t claimed =
        (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
    if (claimed / MOST_RATIO > u->packed_size || claimed > u->out.limit) {
        return GMD_OK;
    }
    return GMD_GROW(&u->out.data, &u->out.capacity, claimed + 2)
               ? GMD_OK
               : fail_memory(claimed, u->name, u->error);
}

static gmd_status unpack_member(unpacker *u)
{
    for (;;) {
        gmd_status status = buffer_reserve(&u->out, u->name, u->error);
        if (status != GMD_OK) {
            return status;
        }
        feed(u);
        size_t room = buffer_room(&u->out);
        uInt step = room < UINT32_MAX / 2 ? (uInt)room : UINT32_MAX / 2;
        u->zlib.next_out = u->out.data + u->out.size;
        u->zlib.avail_out = step;
        int code = inflate(&u->zlib, Z_NO_FLUSH);
        u->out.size += step - u->zlib.avail_out;
        if (code == Z_STREAM_END) {
            return GMD_OK;
        }
        bool is_starved = u->zlib.avail_in == 0 && u->at == u->packed_size;
        if (code != Z_OK || (is_starved && u->zlib.avail_out)) {
            return fail_unpack(u, code == Z_OK ? Z_BUF_ERROR : code);
        }
    }
}

static bool only_zeros(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i]) {
            return false;
        }
    }
    return true;
}

static bool has_gzip_magic(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

static gmd_status unpack_members(unpacker *u)
{
    for (;;) {
        gmd_status status = unpack_member(u);
        if (status != GMD_OK) {
            return status;
        }
        size_t at = packed_position(u);
        if (only_zeros(u->packed + at, u->packed_size - at)) {
            return check_limit(&u->out, u->name, u->error);
        }
        if (!has_gzip_magic(u->packed + at, u->packed_size - at)) {
            return gmd_fail(u->error, GMD_BAD_INPUT,
                            "%s: byte %zu: expected the end of the file or another gzip member",
                            u->name, at);
        }
        inflateReset(&u->zlib);
    }
}

gmd_status unpack_gzip(const uint8_t *packed, size_t packed_size, size_t limit, const char *name,
                       uint8_t **data, size_t *size, gmd_error *error)
{
    unpacker u = {.packed = packed,
                  .packed_size = packed_size,
                  .name = name,
                  .out = {.limit = limit},
                  .error = error};
    if (inflateInit2(&u.zlib, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip, not zlib, headers */
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory to unpack it", name);
    }
    gmd_status status = reserve_claimed(&u);
    if (status == GMD_OK) {
        status = unpack_members(&u);
    }
    inflateEnd(&u.zlib);
    if (status != GMD_OK) {
        free(u.out.data);
        return status;
    }
    u.out.data[u.out.size] = 0;
    *data = u.out.data;
    *size = u.out.size;
    return GMD_OK;
}

/* --- files ------------------------------------------------------------------------------- */

static gmd_status read_all(int descriptor, const char *path, buffer *out, gmd_error *error)
{
    for (;;) {
        gmd_status status = buffer_reserve(out, path, error);
        if (status != GMD_OK) {
            return status;
        }
        ssize_t got = read(descriptor, out->data + out->size, buffer_room(out));
        if (got < 0 && errno != EINTR) {
            return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno));
        }
        if (got == 0) {
            out->data[out->size] = 0;
            return GMD_OK;
        }
        out->size += got > 0 ? (size_t)got : 0;
    }
}

static gmd_status open_file(const char *path, int *descriptor, struct stat *info, gmd_error *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    *info = (struct stat){0};
    *descriptor = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (*descriptor < 0) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (fstat(*descriptor, info) == 0 && S_ISDIR(info->st_mode)) {
        if (!is_stdin) {
            close(*descriptor);
        }
        return gmd_fail(error, GMD_BAD_INPUT, "%s: is a directory, expected a file", path);
    }
    return GMD_OK;
}

/* The size of a regular file is known before: it is refused at once, or read into a buffer that
 * fits. */
static gmd_status start_buffer(buffer *raw, const struct stat *info, bool is_any_size,
                               const char *path, gmd_error *error)
{
    size_t expected = S_ISREG(info->st_mode) ? (size_t)info->st_size : 0;
    *raw = (buffer){.limit = CONTENT_LIMIT};
    if (is_any_size && expected > raw->limit) {
        raw->limit = expected;
    }
    gmd_status status = check_limit(&(buffer){.size = expected, .limit = raw->limit}, path, error);
    if (status != GMD_OK || expected == 0) {
        return status;
    }
    raw->data = malloc(expected + 2); /* the end of the file takes a byte to be seen */
    if (!raw->data) {
        return fail_memory(expected, path, error);
    }
    raw->capacity = expected + 1;
    return GMD_OK;
}

static gmd_status read_file(const char *path, bool is_any_size, uint8_t **data, size_t *size,
                            gmd_error *error)
{
    int descriptor;
    struct stat info;
    buffer raw;
    gmd_status status = open_file(path, &descriptor, &info, error);
    if (status != GMD_OK) {
        return status;
    }
    status = start_buffer(&raw, &info, is_any_size, path, error);
    if (status == GMD_OK) {
        status = read_all(descriptor, path, &raw, error);
    }
    if (descriptor != STDIN_FILENO) {
        close(descriptor);
    }
    if (status != GMD_OK) {
        free(raw.data);
        return status;
    }
    if (has_gzip_magic(raw.data, raw.size)) {
        status = unpack_gzip(raw.data, raw.size, CONTENT_LIMIT, path, data, size, error);
        free(raw.data);
        return status;
    }
    *data = raw.data;
    *size = raw.size;
    return GMD_OK;
}

gmd_status gmd_file_read(const char *path, uint8_t **data, size_t *size, gmd_error *error)
{
    return read_file(path, false, data, size, error);
}

gmd_status gmd_file_read_any_size(const char *path, uint8_t **data, size_t *size, gmd_error *error)
{
    return read_file(path, true, data, size, error);
}

gmd_status gmd_file_unpack(const uint8_t *packed, size_t packed_size, const char *name,
                           uint8_t **data, size_t *size, gmd_error *error)
{
    return unpack_gzip(packed, packed_size, CONTENT_LIMIT, name, data, size, error);
}
