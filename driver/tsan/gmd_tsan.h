/* gmd_tsan.h - libgmd_tsan.so: the functions that code compiled with -fsanitize=thread calls, in
 * place of ThreadSanitizer's. They do what was asked for and detect nothing: they are there so that
 * each access to memory can be a yield point of interleaved threads (gmd_scheduler.h).
 *
 * The interface is the compilers': what gcc and clang emit, and the annotations that are written by
 * hand (__tsan_acquire...). What a program calls to talk to ThreadSanitizer itself (fibers,
 * reports, Java) is not there, and a library that needs it cannot be loaded. */
#ifndef GMD_TSAN_H
#define GMD_TSAN_H

typedef enum gmd_tsan_access {
    GMD_TSAN_PLAIN,  /* is about to happen: a read, a write, a range */
    GMD_TSAN_BEFORE, /* an atomic operation or a fence is about to happen */
    GMD_TSAN_AFTER,  /* it has happened */
} gmd_tsan_access;

/* `place`: the address that the library's call returns to. Called in the thread that makes the
 * access. */
typedef void (*gmd_tsan_yield)(const void *place, gmd_tsan_access access);

/* Calls `yield` at each access from now on, in any thread; NULL: no more, and an access costs one
 * branch. Thread safety: any thread may call this; other threads may be in `yield` still. */
void gmd_tsan_set_yield(gmd_tsan_yield yield);

#endif
