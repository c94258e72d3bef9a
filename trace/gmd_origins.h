/* gmd_origins.h - where memory was asked for: the stacks of frames in a snapshot, and what the
 * program itself noted beside them.
 *
 * Texts, frames, stacks and origins are kept once each: equal ones have the same number, and number
 * 0 is the empty one (no text, no frames, nothing recorded). A recording of millions of events has
 * some thousands of origins.
 *
 * Thread safety: none; share them read-only. */
#ifndef GMD_ORIGINS_H
#define GMD_ORIGINS_H

#include "gmd_interned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gmd_frame {
    uint32_t file, function; /* texts */
    uint32_t line;           /* 0: not known */
} gmd_frame;

typedef struct gmd_origin {
    uint32_t stack;
    uint32_t metadata;        /* a text: user_metadata */
    uint32_t compile_context; /* a text: what torch.compile noted; 0: nothing, "N/A" in the file */
} gmd_origin;

typedef struct gmd_origins { /* zero-initialised is empty: only number 0 of each */
    gmd_interned texts, frames, stacks, origins;
} gmd_origins;

void gmd_origins_free(gmd_origins *origins);

/* Adds what is not there yet and gives its number. False: no host memory, or 2^32 of them. */
bool gmd_origins_add_text(gmd_origins *origins, const char *text, size_t length, uint32_t *number);
/* The same for a name, which is read as far as its first NUL: each NUL in it becomes U+2400, the
 * picture of one, so that nothing is lost. */
bool gmd_origins_add_name(gmd_origins *origins, const char *name, size_t length, uint32_t *number);
bool gmd_origins_add_frame(gmd_origins *origins, const gmd_frame *frame, uint32_t *number);
/* `frames`: numbers, the innermost first. */
bool gmd_origins_add_stack(gmd_origins *origins, const uint32_t *frames, size_t count,
                           uint32_t *number);
bool gmd_origins_add(gmd_origins *origins, const gmd_origin *origin, uint32_t *number);

/* The text, with a zero behind it; as the file has it, so it may hold any bytes. `length` may be
 * NULL. These and the following are valid until something is added. */
const char *gmd_origins_text(const gmd_origins *origins, uint32_t number, size_t *length);
gmd_frame gmd_origins_frame(const gmd_origins *origins, uint32_t number);
const uint32_t *gmd_origins_stack(const gmd_origins *origins, uint32_t number, size_t *count);
gmd_origin gmd_origins_get(const gmd_origins *origins, uint32_t number);

/* How many there are, number 0 included. */
uint32_t gmd_origins_count(const gmd_origins *origins);
uint32_t gmd_origins_stack_count(const gmd_origins *origins);
uint32_t gmd_origins_frame_count(const gmd_origins *origins);
uint32_t gmd_origins_text_count(const gmd_origins *origins);

#endif
