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

typedef enum pickle_kind {
    PICKLE_NOTHING, /* no value: an unused memo entry */
    PICKLE_NONE,
    PICKLE_BOOL,     /* number: 0 or 1 */
    PICKLE_NATURAL,  /* number: an integer from 0 to UINT64_MAX */
    PICKLE_NEGATIVE, /* negative: an integer from INT64_MIN to -1 */
    PICKLE_FLOAT,    /* real */
    PICKLE_STRING,   /* text, length: UTF-8 as it is in the file, unchecked */
    PICKLE_BYTES,    /* text, length */
    PICKLE_LIST,     /* items */
    PICKLE_TUPLE,    /* items */
    PICKLE_SET,      /* items, duplicates included */
    PICKLE_DICT,     /* items: key, value, key, value...; of equal keys the last counts */
} pickle_kind;

enum { PICKLE_MAX_STRING = (1 << 28) - 1 }; /* bytes: what `length` can say */

typedef struct pickle_items pickle_items;

typedef struct pickle_value {
    uint32_t at;          /* byte of the opcode that made it; files are at most 4 GiB */
    uint32_t kind : 4;    /* pickle_kind */
    uint32_t length : 28; /* of `text`, in bytes */
    union {
        uint64_t number;
        int64_t negative;
        double real;
        const char *text;
        pickle_items *items;
    };
} pickle_value;

struct pickle_items {
    pickle_value *values;
    size_t count, capacity; /* values; a dict has two for each entry */
};

typedef struct pickle_document {
    pickle_value root;
    memory_arena arena; /* holds all containers and decoded text */
} pickle_document;

/* Reads exactly one pickle that takes all of `data`, which must stay in place as long as the values
 * are used. On failure `pickle` is left empty; the message names `name`, the byte and what was
 * expected. Release with pickle_free. */
gmd_status pickle_read(pickle_document *pickle, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error);
void pickle_free(pickle_document *pickle);

/* "an integer", "a list"...: for messages. */
const char *pickle_kind_name(pickle_kind kind);

#endif
