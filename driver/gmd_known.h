/* gmd_known.h - known defects (--known FILE): what is in the list is counted and noted, and neither
 * fails a run nor ends it.
 *
 * One entry a line, `#` starts a comment: the oracle's name, then optionally a colon and the cause,
 * a part of the message: "leak: 2 streams are left". Thread safety: read-only after reading. */
#ifndef GMD_KNOWN_H
#define GMD_KNOWN_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct gmd_known_entry {
    char *oracle;
    char *cause; /* empty: every violation of the oracle */
} gmd_known_entry;

typedef struct gmd_known { /* zero-initialised: nothing is known */
    gmd_known_entry *entries;
    size_t count;
} gmd_known;

/* Adds the entries of a file. On failure nothing is added; the message names file and line. */
gmd_status gmd_known_read(gmd_known *known, const char *path, gmd_error *error);
void gmd_known_free(gmd_known *known);

/* Adds one entry; `cause` may be empty. */
gmd_status gmd_known_add(gmd_known *known, const char *oracle, const char *cause, gmd_error *error);

/* `known` may be NULL. */
bool gmd_known_has(const gmd_known *known, const char *oracle, const char *message);

/* Whether a verdict can be of that name; and all such names, separated by commas. */
bool gmd_oracle_is_named(const char *name);
void gmd_oracle_names(char *text, size_t size);

#endif
