/* gmd_sequences.h - all sequences of a given length over a small alphabet, each up to renaming
 * once.
 *
 * A sequence is a string of codes, a byte for each request. What is one and the same is listed
 * once:
 * - Streams are interchangeable: a stream is named only where all before it are in use.
 * - Private pools are: a new one has the first name that no held pool has. One that nobody holds
 * any more is gone, so that its name may as well be another's.
 * - Uses that follow each other commute, as do synchronisations, and made twice they do no more
 * than once: they come in ascending order. Nothing else does: an allocator may do anything in a
 * call, and which of two equal blocks is freed first decides what can be merged.
 * - Nothing waits for a stream, or synchronises with one, that no request has named yet.
 * - While a stream is captured some requests are left out when a trace runs
 * (docs/trace-format.md): with one of these a sequence is a shorter one. Allocations on streams
 * that are not captured, synchronisations with these, emptying the cache; uses and waits between
 * captured work and other; frees of a block that a stream uses which nobody recorded, where not
 * both streams are captured and the block is the graph's. Once the program has synchronised with a
 * captured stream the capture has failed: there is no more work in it, and no graph to launch.
 * That a capture is under way is taken for granted: an allocator that refuses a pool for it has
 * these requests in the sequences without it only. */
#ifndef GMD_SEQUENCES_H
#define GMD_SEQUENCES_H

#include "gmd_trace.h"

#define GMD_SEQUENCE_MAX     8 /* requests */
#define GMD_ALPHABET_SIZES   4
#define GMD_ALPHABET_STREAMS 2
#define GMD_ALPHABET_POOLS   2

typedef struct gmd_alphabet {
    uint64_t sizes[GMD_ALPHABET_SIZES];
    uint32_t size_count;
    uint32_t stream_count; /* 1 or 2, beside the default stream, which takes no part */
    uint32_t pool_count;   /* 0 to 2: private pools, each begun for all streams or for one */
    bool has_captures;     /* of each stream into each pool, and graphs launched on each stream */
} gmd_alphabet;

/* For a device of that memory: what shares a small segment, the first size that does not, what fits
 * twice but not three times, and all there is. No private pools, no captures: they are the caller's
 * to add. */
void gmd_alphabet_for(gmd_alphabet *alphabet, uint64_t capacity_bytes);

typedef struct gmd_sequence {
    uint8_t codes[GMD_SEQUENCE_MAX];
    uint32_t length;
} gmd_sequence;

/* A number of its own for each sequence. */
uint64_t gmd_sequence_key(const gmd_sequence *sequence);

typedef struct gmd_sequence_visitor {
    bool (*visit)(void *context, const gmd_sequence *sequence); /* false: enough */
    /* Asked of each shorter beginning: false leaves out all that begin so; NULL: nothing. */
    bool (*enter)(void *context, const gmd_sequence *beginning);
    void *context;
} gmd_sequence_visitor;

/* All of exactly `length` requests, in a fixed order. False: the visitor had enough. */
bool gmd_sequences_each(const gmd_alphabet *alphabet, uint32_t length,
                        const gmd_sequence_visitor *visitor);

/* How many there are of that length, where every order and every naming counts. */
uint64_t gmd_sequences_unreduced(const gmd_alphabet *alphabet, uint32_t length);

/* The requests of a sequence, `sequence->length` of them. */
void gmd_sequence_requests(const gmd_alphabet *alphabet, const gmd_sequence *sequence,
                           gmd_request *requests);

#endif
