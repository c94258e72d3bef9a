/* trace_test.h - what the tests of trace/ share. */
#ifndef GMD_TRACE_TEST_H
#define GMD_TRACE_TEST_H

#include "gmd_test.h"

#include <stdbool.h>
#include <stdlib.h>

/* Bytes of a literal that may hold NULs. */
typedef struct bytes {
    const char *data;
    size_t size;
} bytes;
#define BYTES(literal) ((bytes){literal, sizeof(literal) - 1})

/* A file of the project's test data, read whole (unpacked); the caller frees it. */
uint8_t *read_test_data(const char *name, size_t *size);

/* Writes a file that is removed by remove_temporary(); the path stays valid until the next call. */
const char *write_temporary(const void *data, size_t size);
void remove_temporary(void);

/* Packs into one gzip member; the caller frees it. */
uint8_t *pack(const void *data, size_t size, size_t *packed_size);

/* SplitMix64: the same numbers from the same seed everywhere. */
uint64_t next_random(uint64_t *state);

/* Fails the test unless `text` holds `part`. */
void assert_contains(const char *text, const char *part);

/* --- pickles, as protocol 4 writes them -------------------------------------------------- */

typedef struct pickle_text {
    uint8_t data[1 << 16];
    size_t size;
} pickle_text;

void put(pickle_text *p, const char *opcodes);
void put_string(pickle_text *p, const char *text);
void put_integer(pickle_text *p, uint64_t number);
void put_negative(pickle_text *p, int64_t number);

/* "key": number, for use between MARK and SETITEMS. */
void put_number_entry(pickle_text *p, const char *key, uint64_t number);
void put_string_entry(pickle_text *p, const char *key, const char *text);

#endif
