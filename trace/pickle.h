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
#include "pickle_values.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pickle_document {
    pickle_value root;
    memory_arena arena; /* holds all containers and decoded text */
    bool is_cut_off;    /* after a failure: the data end where more is expected */
} pickle_document;

/* Reads exactly one pickle that takes all of `data`, which must stay in place as long as the values
 * are used. `taker`: NULL takes nothing. On failure `pickle` is left without values; the message
 * names `name`, the byte and what was expected. Release with pickle_free. */
gmd_status pickle_read_taking(pickle_document *pickle, const uint8_t *data, size_t size,
                              const char *name, const pickle_taker *taker, gmd_error *error);
gmd_status pickle_read(pickle_document *pickle, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error);
void pickle_free(pickle_document *pickle);

#endif
