/* stacks.h - who called: the stacks of requests, each different one kept once and known by a
 * number.
 *
 * A stack is taken before a request enters anything, for what tells it may wait for a lock of its
 * own (Python's, say) whose holder waits for the allocator. It is remembered for the thread until
 * its next request. Numbers hold for as long as the allocator lives; what a number means in words
 * is found when a snapshot is written. Thread-safe. */
#ifndef GMD_STACKS_H
#define GMD_STACKS_H

#include "gmd_abi.h"
#include "stack_frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stacks stacks;

stacks *stacks_create(void); /* NULL: no host memory */
void stacks_destroy(stacks *s);

/* Who tells the current thread's stack; NULL: the native frames are taken. */
void stacks_set_source(stacks *s, gmd_stack_source *source, void *context);

/* Stacks are going to be taken: what the first one needs is loaded now, not within a request. */
void stacks_prepare(void);

/* A recording's own number, never 0, so that a stack taken for one is not taken for another's. */
uint32_t stacks_new_epoch(void);

/* Takes the current thread's stack for the request that begins, or notes that it has none. */
void stacks_take(stacks *s, uint32_t epoch, bool is_wanted);

/* Takes the current thread's stack by itself; 0: it has none. */
uint32_t stacks_keep(stacks *s);

/* What was taken for the thread's current request; 0: none, or for another recording. */
uint32_t stacks_current(uint32_t epoch);

/* A text that the thread's events carry from now on; "": none. It is kept as stacks are. */
void stacks_set_note(stacks *s, const char *text);

/* Its number; 0: none. */
uint32_t stacks_note(const stacks *s);
const char *stacks_note_text(stacks *s, uint32_t note, size_t *length);

/* Stacks are numbered from 1 to this. */
uint32_t stacks_count(stacks *s);

/* The frames of a stack, the innermost first. */
void stacks_frames(stacks *s, uint32_t stack, stack_frame_fn *visit, void *context);

/* Likewise as text, a line FILE:LINE:FUNCTION for each; gives the bytes. What does not fit is left
 * out; so is a stack that there is none of. */
size_t stacks_text(stacks *s, uint32_t stack, char *text, size_t size);

#endif
