/* host_calls.h - functions of the C library that the libraries of the process call, exchanged for
 * gmd's in those libraries' own tables (the entries that the dynamic loader has filled in). Nobody
 * else is concerned: gmd's program, the C library itself, the libraries of CUDA and the simulated
 * device go on calling the C library's, at no cost. What is left is the allocator under test and
 * what came with it, C++'s library among them.
 *
 * It is not seen what a library calls by an address that it looked up itself (dlsym), what it has
 * linked in statically, and what the C library calls on its behalf (strdup's malloc). */
#ifndef GMD_HOST_CALLS_H
#define GMD_HOST_CALLS_H

#include <stddef.h>

typedef void host_function(void);

typedef struct host_call {
    const char *name;
    host_function *ours; /* of the same type as the C library's */
} host_call;

/* Exchanges them in all libraries that are loaded now; again for those that come later. Returns in
 * how many entries, those of earlier calls among them; 0 on a machine whose tables are not known.
 * Thread safety: while no thread loads or unloads a library. */
size_t host_calls_exchange(const host_call *calls, size_t count);

#endif
