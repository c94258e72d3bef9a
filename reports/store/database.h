/* database.h - the file of a store: opened, checked, its tables made. */
#ifndef GMD_REPORTS_DATABASE_H
#define GMD_REPORTS_DATABASE_H

#include "gmd_error.h"

#include <sqlite3.h>
#include <stdbool.h>

/* What went wrong last, with the file's name before it. */
gmd_status database_fail(sqlite3 *database, const char *path, gmd_error *error);

/* `creates`: also where there is no file, and for writing. To be closed with sqlite3_close(). */
gmd_status database_open(sqlite3 **database, const char *path, bool creates, gmd_error *error);

/* A store of an earlier gmd has no column run.conditions until it is opened to be written. */
bool database_has_conditions(sqlite3 *database);

#endif
