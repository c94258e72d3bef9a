/* pickle_values.h - what a pickle holds: plain data. */
#ifndef GMD_TRACE_PICKLE_VALUES_H
#define GMD_TRACE_PICKLE_VALUES_H

#include <stdbool.h>
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
    PICKLE_RECORD,   /* number: what a taker has made of a dict */
    PICKLE_NOTED,    /* number: the note of a list or tuple that only a record referred to */
} pickle_kind;

enum { PICKLE_MAX_STRING = (1 << 28) - 1 }; /* bytes */

typedef struct pickle_items pickle_items;

typedef struct pickle_value {
    uint64_t at;     /* byte of the opcode that made it */
    uint32_t kind;   /* pickle_kind */
    uint32_t length; /* of `text`, in bytes */
    union {
        uint64_t number;
        int64_t negative;
        double real;
        const char *text;
        pickle_items *items;
    };
} pickle_value;

struct pickle_items {
    union {
        pickle_value *values;
        uint64_t first; /* of a run: the number of its first record */
    };
    uint32_t count;    /* values; a dict has two for each entry */
    uint32_t capacity; /* of `values`; 0: there are none, or they are a run */
    uint32_t note;     /* of whoever reads the values: 0 at first; then nothing can be added */
    uint32_t memo;     /* the machine's: where its memo refers to this */
};

static inline bool pickle_is_container(uint32_t kind)
{
    return kind >= PICKLE_LIST && kind <= PICKLE_DICT;
}

/* A list of records that were taken one after the other has no values, only the first's number. */
static inline bool pickle_is_run(const pickle_items *items)
{
    return items->capacity == 0 && items->count > 0;
}

/* One of the values of a list or tuple, which is at byte `at`. */
static inline pickle_value pickle_item(const pickle_items *items, uint32_t index, uint64_t at)
{
    return pickle_is_run(items)
               ? (pickle_value){.at = at, .kind = PICKLE_RECORD, .number = items->first + index}
               : items->values[index];
}

/* Whoever reads a large pickle takes its dicts as they come, so that its values are never all in
 * memory. */
typedef struct pickle_taker {
    void *context;
    /* A dict at byte `at` that is complete: `count` values, key, value, key, value..., which are
     * valid during the call only. True: it is the record `*number` from here on, wherever the
     * pickle refers to it, and cannot be added to. False: it stays a dict. Lists in it that were
     * given a note and that nothing else refers to are known by the note alone from here on. */
    bool (*take)(void *context, uint64_t at, const pickle_value *pairs, size_t count,
                 uint64_t *number);
} pickle_taker;

/* "an integer", "a list"...: for messages. */
const char *pickle_kind_name(pickle_kind kind);

#endif
