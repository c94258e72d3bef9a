/* builtin.c - the table that gmd is built with: builtin.txt.gz as CMake makes bytes of it. */
#include "gmd_file.h"
#include "gmd_workspaces.h"

#include <stdlib.h>

static const unsigned char packed[] = {
#include "builtin.inc"
};

gmd_status gmd_workspaces_builtin(gmd_workspaces **table, gmd_error *error)
{
    uint8_t *text;
    size_t size;
    *table = NULL;
    gmd_status status =
        gmd_file_unpack(packed, sizeof packed, "builtin.txt.gz", &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_workspaces_parse(table, (const char *)text, size, "builtin.txt.gz", error);
        free(text);
    }
    return status;
}
