#include "gmd_output.h"
#include "gmd_temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as many as Linux follows */

/* One link further: `path` becomes what it names; false: it is no link. */
static bool follow(char *path, size_t size)
{
    char named[PATH_MAX];
    ssize_t length = readlink(path, named, sizeof named - 1);
    if (length <= 0) {
        return false;
    }
    named[length] = '\0';
    const char *slash = strrchr(path, '/');
    size_t folder = named[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
    if (folder + (size_t)length >= size) {
        return false;
    }
    memcpy(path + folder, named, (size_t)length + 1);
    return true;
}

/* What a process has open: opened anew and written, it is the same file; replaced, another one. */
static bool is_descriptor(const char *path)
{
    const char *const kinds[] = {"/proc/", "/dev/fd/", "/dev/stdout", "/dev/stderr"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(path, kinds[i], strlen(kinds[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* realpath() would want the file to be there, and a link may name one that is yet to be made. */
static bool find_target(const char *path, char *target, size_t size)
{
    if ((size_t)snprintf(target, size, "%s", path) >= size) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (int i = 0; i < LINKS_MAX; i++) {
        if (is_descriptor(target) || !follow(target, size)) {
            return true;
        }
    }
    errno = ELOOP;
    return false;
}

/* With the rights of the file whose place it takes. */
static FILE *open_part(gmd_output *o, const struct stat *before)
{
    snprintf(o->part, sizeof o->part, "%s.part-%ld", o->target, (long)getpid());
    unlink(o->part); /* of a process of that number that was killed; a link of others is not
                        followed */
    gmd_temporary_announce(o->part);
    int file = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (stream && before) {
        int ignored = fchmod(file, before->st_mode & 07777);
        (void)ignored;
    }
    if (!stream && file >= 0) {
        int reason = errno;
        close(file);
        unlink(o->part);
        errno = reason;
    }
    if (!stream) {
        gmd_temporary_forget(o->part);
        o->part[0] = '\0';
    }
    return stream;
}

/* Where it was renamed, nothing of it is left to remove. */
static void remove_part(gmd_output *o)
{
    unlink(o->part);
    gmd_temporary_forget(o->part);
}

static FILE *open_stream(gmd_output *o)
{
    struct stat before;
    bool is_there = stat(o->target, &before) == 0;
    if (is_there && (!S_ISREG(before.st_mode) || is_descriptor(o->target))) {
        return fopen(o->target, "we");
    }
    if (is_there && access(o->target, W_OK) != 0) {
        return NULL; /* a file that is protected is not replaced */
    }
    FILE *stream = open_part(o, is_there ? &before : NULL);
    return stream || !is_there ? stream : fopen(o->target, "we");
}

/* With errno; a pipe is not opened, for its reader would take the end of this as that of all. */
static bool can_be_written(gmd_output *o)
{
    struct stat before;
    if (!find_target(o->path, o->target, sizeof o->target)) {
        return false;
    }
    if (stat(o->target, &before) == 0) {
        errno = EISDIR;
        return !S_ISDIR(before.st_mode) && access(o->target, W_OK) == 0;
    }
    FILE *part = open_part(o, NULL);
    if (part) {
        fclose(part);
        remove_part(o);
    }
    return part != NULL;
}

gmd_status gmd_output_probe(const char *path, gmd_error *error)
{
    gmd_output output = {.path = path};
    return strcmp(path, "-") == 0 || can_be_written(&output)
               ? GMD_OK
               : gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: %s", path, strerror(errno));
}

gmd_status gmd_output_open(gmd_output *output, const char *path, gmd_error *error)
{
    *output = (gmd_output){.path = path};
    if (strcmp(path, "-") == 0) {
        output->stream = stdout;
    } else if (find_target(path, output->target, sizeof output->target)) {
        output->stream = open_stream(output);
    }
    return output->stream
               ? GMD_OK
               : gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: %s", path, strerror(errno));
}

gmd_status gmd_output_close(gmd_output *output, gmd_status status, gmd_error *error)
{
    FILE *stream = output->stream;
    bool is_stdout = stream == stdout;
    bool has_failed = !stream || fflush(stream) != 0 || ferror(stream);
    int reason = errno; /* of a write that failed before, where there was one */
    if (stream && !is_stdout && fclose(stream) != 0) {
        reason = has_failed ? reason : errno;
        has_failed = true;
    }
    output->stream = NULL;
    bool is_complete = status == GMD_OK && !has_failed;
    if (is_complete && output->part[0] && rename(output->part, output->target) != 0) {
        reason = errno;
        has_failed = true;
    }
    if (output->part[0]) {
        remove_part(output);
    }
    return has_failed && (status == GMD_OK || status == GMD_FAILED)
               ? gmd_fail(error, GMD_FAILED, "%s: writing failed: %s",
                          is_stdout ? "standard output" : output->path, strerror(reason))
               : status;
}

int gmd_output_folder(const char *path)
{
    char text[4096];
    if ((size_t)snprintf(text, sizeof text, "%s", path) >= sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *c = text + 1; *text && *c; c++) {
        if (*c == '/') {
            *c = '\0';
            if (mkdir(text, 0777) != 0 && errno != EEXIST) {
                return -1;
            }
            *c = '/';
        }
    }
    return mkdir(text, 0777) != 0 && errno != EEXIST ? -1 : 0;
}
