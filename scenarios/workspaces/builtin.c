/* builtin.c - the table that gmd is built with: builtin.txt as CMake makes bytes of it. */
#include "gmd_workspaces.h"

static const unsigned char builtin_text[] = {
#include "builtin.inc"
};

gmd_status gmd_workspaces_builtin(gmd_workspaces **table, gmd_error *error)
{
    return gmd_workspaces_parse(table, (const char *)builtin_text, sizeof builtin_text,
                                "builtin.txt", error);
}
