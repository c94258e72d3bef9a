/* sweep_task.h - what the host and the kernels of kernels.cu tell each other. Read by both
 * compilers.
 */
#ifndef GMD_SWEEP_TASK_H
#define GMD_SWEEP_TASK_H

#include <stdint.h>

enum { SWEEP_FEW = 14, SWEEP_MANY = 96, SWEEP_FINDS = 2048 };
/* A word is verified before it is written. SEEK, alone: words that are `expected` or `written` are
 * what is found; bytes at the ends that fill no two words are left out, unless there are no others.
 */
enum { SWEEP_VERIFY = 1, SWEEP_WRITE = 2, SWEEP_SEEK = 4 };

/* Beside VERIFY and WRITE: 4 KiB of every 64 KiB, the first and the last 4 KiB among them. */
enum { SWEEP_STRIPED = 8, SWEEP_STRIPE = 4096, SWEEP_STRIPE_STEP = 65536 };

/* Patterns are words of 8 bytes at addresses that are multiples of 8, whatever a range begins at.
 */
typedef struct sweep_range {
    uint64_t address, bytes;
    uint64_t expected, written;
    uint32_t flags, ticket; /* the ticket comes back with what was found */
} sweep_range;

/* What one thread block found in a range: addresses of the first and the last changed byte. */
typedef struct sweep_find {
    uint64_t first, last, changed; /* changed: bytes */
    uint64_t word;                 /* that the first one lies in, as it was found */
    uint32_t ticket;
    uint32_t state; /* SWEEP_FREE, and so on */
} sweep_find;

/* The device takes an entry and completes it; the host reads it and makes it free again. */
enum { SWEEP_FREE, SWEEP_TAKEN, SWEEP_COMPLETE };

/* In pinned memory of the host: the same address for both. One for each device. */
typedef struct sweep_finds {
    uint32_t count; /* of finds so far, kept or not */
    uint32_t lost;  /* of those: no entry was free */
    sweep_find entries[SWEEP_FINDS];
} sweep_finds;

typedef struct sweep_few {
    sweep_finds *finds;
    sweep_range ranges[SWEEP_FEW];
} sweep_few;

typedef struct sweep_many {
    sweep_finds *finds;
    sweep_range ranges[SWEEP_MANY];
} sweep_many;

#endif
