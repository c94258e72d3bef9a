/* instrumented.h - libraries that were compiled with -fsanitize=thread: what they call is there
 * before they are loaded. */
#ifndef GMD_INSTRUMENTED_H
#define GMD_INSTRUMENTED_H

#include "gmd_error.h"

#include <stdbool.h>

/* The library's file calls such functions. What it needs in turn is not looked at. */
bool instrumented_is(const char *path);
/* The loader's message is about them: another library that is needed calls them. */
bool instrumented_is_told(const char *message);

/* Loads libgmd_tsan.so, and the names that gcc gives ThreadSanitizer's library, from
 * `lib_directory`/tsan. Where ThreadSanitizer itself is in the process (gmd's own build under it),
 * nothing happens. */
gmd_status instrumented_prepare(const char *lib_directory, gmd_error *error);

#endif
