/* entry.h - what is queued on streams: one piece of work, and what it touches. */
#ifndef GMD_SIM_ENTRY_H
#define GMD_SIM_ENTRY_H

#include "gmd_sim.h"

struct gmd_past;
struct stream;

typedef struct access_range {
    uint64_t address, size;
} access_range;

enum { ACCESSES_INLINE = 2 };

typedef struct access_list {
    uint32_t count;
    uint64_t mark;      /* that it writes; 0: none */
    access_range *more; /* all of them, owned, where they are more than fit here */
    access_range few[ACCESSES_INLINE];
} access_list;

typedef struct entry {
    enum {
        ENTRY_KERNEL,
        ENTRY_FILL,
        ENTRY_COPY,
        ENTRY_WAIT,
        ENTRY_RECORD,
        ENTRY_HOST,
        ENTRY_WAIT_VALUE,
        ENTRY_WAIT_EVENT, /* only as a node of a graph */
        ENTRY_NOTHING
    } kind;
    uint32_t value;       /* FILL, WAIT_VALUE */
    uint32_t count;       /* FILL: bytes of the pattern, 1 or 4; WAIT_VALUE: how it compares */
    uint64_t duration_ns; /* KERNEL, FILL, COPY */
    uint64_t queued_ns, sequence;
    union {
        struct {
            uint64_t to, from, width, height; /* rows of `width` bytes */
            uint64_t to_pitch, from_pitch;
            void *staged; /* a copy of pageable source memory, owned */
        } move;           /* FILL, COPY, WAIT_VALUE (to) */
        struct {
            struct stream *on;
            uint64_t ticket;
        } wait;
        cudaEvent_t event; /* RECORD, WAIT_EVENT */
        struct {
            cudaHostFn_t function;
            cudaStreamCallback_t callback; /* instead of it */
            void *data;
            cudaStream_t stream;
            struct gmd_past *before; /* what its stream's work was after then, counted */
        } host;                      /* HOST */
        access_list accesses;        /* KERNEL */
    };
} entry;

#endif
