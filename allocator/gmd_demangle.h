/* gmd_demangle.h - names of C++ in words. */
#ifndef GMD_DEMANGLE_H
#define GMD_DEMANGLE_H

/* The name in words, for the caller to free. NULL: it is none of C++, or the process has no
 * libstdc++. Thread-safe. */
char *gmd_demangle(const char *symbol);

#endif
