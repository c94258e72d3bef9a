#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gmd_status refuse(const char *path, int reason, gmd_error *error)
{
    return gmd_fail(error, GMD_FAILED, "%s: cannot be written: %s", path, strerror(reason));
}

/* Where a link leads to: renaming would put the file in the link's own place. */
static bool resolve(new_file *f, const char *path)
{
    char *real = realpath(path, NULL);
    int length = snprintf(f->path, sizeof f->path, "%s", real ? real : path);
    free(real);
    return length >= 0 && (size_t)length < sizeof f->path;
}

/* A name that nobody has: two threads, or two processes, may write the same file at a time. */
static int open_temporary(new_file *f)
{
    enum { TRIES = 1000 };
    int descriptor = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && descriptor < 0 && errno == EEXIST; i++) {
        snprintf(f->temporary, sizeof f->temporary, "%s.%ld.%d.new", f->path, (long)getpid(), i);
        descriptor = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return descriptor;
}

gmd_status new_file_open(new_file *f, const char *path, gmd_error *error)
{
    struct stat status;
    f->used = 0;
    f->failure = 0;
    f->stream = NULL;
    f->temporary[0] = '\0';
    if (!resolve(f, path)) {
        return refuse(path, ENAMETOOLONG, error);
    }
    bool is_special = stat(f->path, &status) == 0 && !S_ISREG(status.st_mode);
    f->descriptor = is_special ? open(f->path, O_WRONLY | O_CLOEXEC) : open_temporary(f);
    return f->descriptor >= 0 ? GMD_OK : refuse(path, errno, error);
}

void new_file_on_stream(new_file *f, FILE *stream)
{
    f->used = 0;
    f->failure = 0;
    f->stream = stream;
    f->descriptor = -1;
    f->temporary[0] = '\0';
    snprintf(f->path, sizeof f->path, "the file");
}

static void write_all(new_file *f, const unsigned char *bytes, size_t size)
{
    if (f->stream && !f->failure && fwrite(bytes, 1, size, f->stream) != size) {
        f->failure = errno ? errno : EIO;
    }
    if (f->stream) {
        return;
    }
    while (size && !f->failure) {
        ssize_t written = write(f->descriptor, bytes, size);
        if (written < 0 && errno != EINTR) {
            f->failure = errno;
        }
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

static void flush(new_file *f)
{
    write_all(f, f->buffer, f->used);
    f->used = 0;
}

void new_file_put(new_file *f, const void *bytes, size_t size)
{
    if (size > sizeof f->buffer - f->used) {
        flush(f);
    }
    if (size > sizeof f->buffer) {
        write_all(f, bytes, size);
        return;
    }
    memcpy(f->buffer + f->used, bytes, size);
    f->used += size;
}

gmd_status new_file_finish(new_file *f, gmd_error *error)
{
    flush(f);
    if (!f->stream && close(f->descriptor) != 0 &&
        !f->failure) { /* a network's disk tells it here */
        f->failure = errno;
    }
    if (!f->failure && f->temporary[0] && rename(f->temporary, f->path) != 0) {
        f->failure = errno;
    }
    if (f->failure && f->temporary[0]) {
        unlink(f->temporary);
    }
    return f->failure ? refuse(f->path, f->failure, error) : GMD_OK;
}
