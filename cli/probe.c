#include "probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gmd_status cli_probe_file(const char *path, gmd_error *error)
{
    if (strcmp(path, "-") == 0) {
        return GMD_OK;
    }
    bool was_there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "ae");
    if (!file) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: cannot be written: %s", path, strerror(errno));
    }
    fclose(file);
    if (!was_there) {
        unlink(path);
    }
    return GMD_OK;
}

gmd_status cli_probe_folder(const char *path, gmd_error *error)
{
    char name[4200];
    bool was_there = access(path, F_OK) == 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return gmd_fail(error, GMD_BAD_INPUT, "%s: the folder cannot be made: %s", path,
                        strerror(errno));
    }
    snprintf(name, sizeof name, "%s/.gmd-probe-%ld", path, (long)getpid());
    gmd_status status = cli_probe_file(name, error);
    if (!was_there) {
        rmdir(path);
    }
    return status;
}
