/* gmd_host_heap.h - how much of the host's memory the allocator under test holds, by the function
 * of the allocator that asked for it: exactly what its libraries take of malloc and its like, and
 * of C++'s operator new, which calls malloc. Memory that a library takes by mmap, or of a malloc
 * that is linked into it, is not seen.
 *
 * Thread safety: any thread, but for gmd_host_heap_watch. What is entered belongs to the calling
 * thread. */
#ifndef GMD_HOST_HEAP_H
#define GMD_HOST_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GMD_HOST_FUNCTION_MAX = 24 }; /* more than the ABI under test has */

typedef struct gmd_host_held {
    const char *function; /* which asked for it; NULL: a thread of the allocator's own */
    uint64_t bytes;       /* that it asked for, and that are not freed, by whomever */
} gmd_host_held;

/* What is asked for from now on is counted, until the process ends. False: it cannot be seen here
 * (the machine, or a library that calls no such function), and nothing is counted. */
bool gmd_host_heap_watch(void);

/* In the order in which they first asked. Returns how many; 0 where it is not watched, or no longer
 * since gmd itself ran out of memory. */
size_t gmd_host_heap_held(gmd_host_held held[GMD_HOST_FUNCTION_MAX]);

/* Around the calls of the allocator under test; `function` must last. A nanosecond. */
void host_heap_enter(const char *function);
void host_heap_leave(void);

#endif
