/* gmd_names.h - the names that a trace's text uses: how they may look, how they are made unique,
 * and a table that finds them in constant time. */
#ifndef GMD_TRACE_NAMES_H
#define GMD_TRACE_NAMES_H

#include "gmd_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GMD_NAME_BYTES = 128 }; /* the longest name in a text trace, its terminating zero included */

/* The word before a device number, which no name may be. */
#define GMD_DEVICE_WORD "device"

/* [A-Za-z_][A-Za-z0-9_.-]*, short enough, and not the word "device". */
bool gmd_name_is_valid(const char *name, size_t length);

/* Whether `name` is how an unnamed entry `index` of a list with `letter` is written. */
bool gmd_name_is_default(const char *name, size_t length, char letter, uint32_t index);

/* The name of an entry as messages show it; `text` is used for an unnamed one. */
const char *gmd_name_text(const gmd_names *names, char letter, uint32_t index,
                          char text[GMD_NAME_BYTES]);

/* Whether `conf` can be a trace's line of settings: one line of UTF-8 text of at most 4096 bytes
 * without control characters and '#', and neither empty nor with spaces around it. */
bool gmd_conf_is_valid(const char *conf, size_t length);

/* A set of names, each with a number. The names are borrowed: they must outlive the table. */
typedef struct gmd_name_slot {
    const char *name; /* NULL: empty */
    uint32_t length, value;
} gmd_name_slot;

typedef struct gmd_name_table {
    gmd_name_slot *slots;
    size_t count, capacity; /* capacity: a power of two, or 0 */
    uint64_t key[2];        /* of the hash: drawn, so that nobody can choose names that collide */
} gmd_name_table;

/* NULL: not in the table. */
const gmd_name_slot *gmd_name_table_find(const gmd_name_table *table, const char *name,
                                         size_t length);
/* The name must not be in the table yet. False: no memory, and nothing changed. */
bool gmd_name_table_add(gmd_name_table *table, const char *name, size_t length, uint32_t value);
void gmd_name_table_free(gmd_name_table *table);

/* What gmd_trace_write calls the entries of a list: valid names, each once, the same for the same
 * trace. Release it with gmd_written_names_free. */
typedef struct gmd_written_names {
    char **items;
    uint32_t count;
} gmd_written_names;

/* `first`: what entry 0 is always called (the format fixes "s0" and "main"); NULL: like the others.
 */
bool gmd_written_names_make(gmd_written_names *written, const gmd_names *names, char letter,
                            const char *first);
void gmd_written_names_free(gmd_written_names *written);

#endif
