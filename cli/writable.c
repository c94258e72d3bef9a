#include "writable.h"

#include "gmd_output.h"
#include "gmd_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gmd_status cli_probe_file(const char *path, gmd_error *error)
{
    return *path ? gmd_output_probe(path, error)
                 : gmd_fail(error, GMD_BAD_INPUT, "'': expected the name of a file");
}

/* The first folder on the way that is not there; all: the whole path. */
static size_t length_to_make(const char *path)
{
    char text[4200];
    struct stat info;
    size_t length = strlen(path);
    snprintf(text, sizeof text, "%s", path);
    for (char *c = text + 1; *text && *c; c++) {
        if (*c == '/') {
            *c = '\0';
            if (stat(text, &info) != 0) {
                return (size_t)(c - text);
            }
            *c = '/';
        }
    }
    return length;
}

gmd_status cli_probe_folder(const char *path, gmd_error *error)
{
    char name[4200];
    if (!*path) {
        return gmd_fail(error, GMD_BAD_INPUT, "'': expected the name of a folder");
    }
    snprintf(name, sizeof name, "%.*s", (int)length_to_make(path), path);
    if (mkdir(name, 0777) == 0) {
        rmdir(name);
        return GMD_OK;
    }
    if (errno != EEXIST) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: the folder cannot be made: %s", path,
                        strerror(errno));
    }
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: is a file, expected a folder", path);
    }
    snprintf(name, sizeof name, "%.4000s/.gmd-probe-%ld", path, (long)getpid());
    return cli_probe_file(name, error);
}

/* Where there is no such file yet: the folder that it is to be in, and its name there. */
static bool is_same_place(const char *a, const char *b)
{
    const char *paths[2] = {a, b};
    struct stat folders[2];
    const char *names[2];
    for (int i = 0; i < 2; i++) {
        char folder[4200];
        names[i] = gmd_file_name(paths[i]);
        snprintf(folder, sizeof folder, "%.*s.", (int)(names[i] - paths[i]), paths[i]);
        if (stat(folder, &folders[i]) != 0) {
            return false;
        }
    }
    return strcmp(names[0], names[1]) == 0 && folders[0].st_dev == folders[1].st_dev &&
           folders[0].st_ino == folders[1].st_ino;
}

bool cli_is_same_file(const char *a, const char *b)
{
    struct stat files[2];
    if (stat(a, &files[0]) != 0 || stat(b, &files[1]) != 0) {
        return is_same_place(a, b);
    }
    return S_ISREG(files[0].st_mode) && files[0].st_dev == files[1].st_dev &&
           files[0].st_ino == files[1].st_ino;
}
