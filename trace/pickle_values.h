/* pickle_values.h - what a pickle holds: plain data. */
#ifndef GMD_TRACE_PICKLE_VALUES_H
#define GMD_TRACE_PICKLE_VALUES_H

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
    size_t count;      /* values; a dict has two for each entry */
    uint32_t capacity; /* a value takes a byte of the file at least, so their numbers fit */
    uint32_t note;     /* of whoever reads the values: 0 at first */
};

/* "an integer", "a list"...: for messages. */
const char *pickle_kind_name(pickle_kind kind);

#endif
