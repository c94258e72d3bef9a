/* pickle.h - reads Python pickles that hold plain data, protocols 0 to 5, without executing
 * anything.
 *
 * Opcodes: CPython's Lib/pickletools.py documents them. Those that import, call or build objects,
 * and those that refer to something outside the file, are refused. Memory and time are linear in
 * the size of the file whatever it claims: containers are shared by reference, as in Python, so
 * that a few bytes can stand for a structure of astronomical size once it is walked. A consumer
 * must bound what it takes out. */
#ifndef GMD_TRACE_PICKLE_H
#define GMD_TRACE_PICKLE_H

#include "arena.h"
#include "gmd_error.h"

#include <stddef.h>
#include <stdint.h>

typedef enum gmd_pickle_kind {
    GMD_PICKLE_NOTHING, /* no value: an unused memo entry */
    GMD_PICKLE_NONE,
    GMD_PICKLE_BOOL,     /* number: 0 or 1 */
    GMD_PICKLE_NATURAL,  /* number: an integer from 0 to UINT64_MAX */
    GMD_PICKLE_NEGATIVE, /* negative: an integer from INT64_MIN to -1 */
    GMD_PICKLE_FLOAT,    /* real */
    GMD_PICKLE_STRING,   /* text, length: UTF-8 as it is in the file, unchecked */
    GMD_PICKLE_BYTES,    /* text, length */
    GMD_PICKLE_LIST,     /* items */
    GMD_PICKLE_TUPLE,    /* items */
    GMD_PICKLE_SET,      /* items, duplicates included */
    GMD_PICKLE_DICT,     /* items: key, value, key, value...; of equal keys the last counts */
} gmd_pickle_kind;

enum { GMD_PICKLE_MAX_STRING = (1 << 28) - 1 }; /* bytes: what `length` can say */

typedef struct gmd_pickle_items gmd_pickle_items;

typedef struct gmd_pickle_value {
    uint32_t at;          /* byte of the opcode that made it; files are at most 4 GiB */
    uint32_t kind : 4;    /* gmd_pickle_kind */
    uint32_t length : 28; /* of `text`, in bytes */
    union {
        uint64_t number;
        int64_t negative;
        double real;
        const char *text;
        gmd_pickle_items *items;
    };
} gmd_pickle_value;

struct gmd_pickle_items {
    gmd_pickle_value *values;
    size_t count, capacity; /* values; a dict has two for each entry */
};

typedef struct gmd_pickle {
    gmd_pickle_value root;
    gmd_arena arena; /* holds all containers and decoded text */
} gmd_pickle;

/* Reads exactly one pickle that takes all of `data`, which must stay in place as long as the values
 * are used. On failure `pickle` is left empty; the message names `name`, the byte and what was
 * expected. Release with gmd_pickle_free. */
gmd_status gmd_pickle_read(gmd_pickle *pickle, const uint8_t *data, size_t size, const char *name,
                           gmd_error *error);
void gmd_pickle_free(gmd_pickle *pickle);

/* "an integer", "a list"...: for messages. */
const char *gmd_pickle_kind_name(gmd_pickle_kind kind);

#endif
