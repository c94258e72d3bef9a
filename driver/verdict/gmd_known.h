/* gmd_known.h - known defects (--known FILE): what is in the list is counted and noted, and neither
 * fails a run nor ends it.
 *
 * One entry a line, `#` starts a comment: an oracle's name, or a kind's, and those of its parties
 * that are to be these, or behind a '-' not to be there: "leak", "leak.streams", "progress.crash
 * signal=SIGSEGV at=free", "progress.deadlock lock=mutex -lock2", "progress.failed error=\"CUDA
 * error: invalid resource handle\"". A party that is not named may be any, or none. (Lists of an
 * earlier gmd name a part of the message instead, behind a colon: "leak: 2 streams are left". They
 * hold on, as long as the words do.) Then, each behind a '|', what the run must have had before, in
 * the words of a .gmd file, so that an entry hides no other defect with the same message: "fault"
 * (any), "fault FUNCTION" (any of its calls), "conf TEXT" (a part of the settings), "destroy",
 * "device" (a request on, or for, another one than the first), "begin_pool" (or begin_capture,
 * which opens one), "begin_capture", "leave_error". "end" there: after it the run is judged no
 * more, because all that follows may be its consequence. Thread safety: read-only after reading. */
#ifndef GMD_KNOWN_H
#define GMD_KNOWN_H

#include "gmd_error.h"
#include "gmd_outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KNOWN_ABSENT_MAX = 8 };

typedef struct known_entry {
    char *oracle;
    gmd_identity wanted; /* the kind, empty: any of the oracle; and parties that must be these */
    char absent[KNOWN_ABSENT_MAX][GMD_PARTY_NAME]; /* parties that must not be there */
    uint32_t absent_count;
    char *words;       /* a part of the message; empty: it goes by `wanted` alone */
    char *conditions;  /* "fault cudaMalloc | destroy"; empty: none */
    bool spoils;       /* the rest of the run is not judged */
    const char *quirk; /* known only once this deviation of the allocator mattered; NULL: always */
} known_entry;

/* How often a deviation has mattered, by its name: gmd_quirk_count of the allocator under test. */
typedef int64_t gmd_known_count_fn(const char *quirk);

typedef struct gmd_known { /* zero-initialised: nothing is known */
    known_entry *entries;
    size_t count, capacity;
    gmd_known_count_fn *
        *quirk_count; /* filled in where the allocator is loaded; NULL: nobody asks */
} gmd_known;

/* Adds the entries of a file. On failure nothing is added; the message names file and line. */
gmd_status gmd_known_read(gmd_known *known, const char *path, gmd_error *error);
void gmd_known_free(gmd_known *known);

/* All lists, each of which may be NULL, in one, whose entries stay theirs: only all->entries is the
 * caller's to free. False: no host memory. */
bool gmd_known_join(const gmd_known *const lists[], size_t list_count, gmd_known *all);

/* Adds one line of a list; `name` is for messages. */
gmd_status known_add(gmd_known *known, const char *line, const char *name, gmd_error *error);

/* One that holds only once `quirk`, a string that stays, has mattered. */
gmd_status known_add_quirk(gmd_known *known, const char *line, const char *quirk, gmd_error *error);

/* Entries that go by words of messages, which may change with any version of gmd. */
size_t gmd_known_count_words(const gmd_known *known);

/* The entry that a violation falls under; NULL: none. `known` may be NULL. `context`: what the run
 * has had; NULL: nothing. */
const known_entry *known_find(const gmd_known *known, const known_context *context,
                              const gmd_identity *identity, const char *message);

/* Whether a verdict can be of that oracle; and the names of all, separated by commas. */
bool gmd_oracle_is_named(const char *name);
void gmd_oracle_names(char *text, size_t size);

#endif
