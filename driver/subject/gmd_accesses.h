/* gmd_accesses.h - the accesses to memory of a library that was compiled with -fsanitize=thread. */
#ifndef GMD_ACCESSES_H
#define GMD_ACCESSES_H

#include "gmd_tsan.h"

/* Calls `yield` at each of them from now on, in the thread that makes it (gmd_tsan.h); NULL: no
 * more. Nothing happens where no such library is loaded. Thread safety: as gmd_tsan_set_yield. */
void gmd_accesses_yield(gmd_tsan_yield yield);

#endif
