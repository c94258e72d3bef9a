/* store_none.c - in place of the store where gmd is built without SQLite. */
#include "gmd_store.h"

static gmd_status refuse(const char *path, gmd_error *error)
{
    return gmd_fail(error, GMD_BAD_INPUT,
                    "%.200s: this gmd was built without SQLite (libsqlite3-dev)", path);
}

gmd_status gmd_store_add(const char *path, const gmd_report *report, time_t when, gmd_error *error)
{
    (void)report;
    (void)when;
    return refuse(path, error);
}

gmd_status gmd_store_check(const char *path, gmd_error *error)
{
    return refuse(path, error);
}

gmd_status gmd_store_history(const char *path, size_t most, FILE *out, gmd_error *error)
{
    (void)most;
    (void)out;
    return refuse(path, error);
}
