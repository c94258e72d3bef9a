/* gmd_exceptions.h - C++ exceptions of an allocator under test. gmd is C: what leaves the allocator
 * finds no handler and ends the process. The part of gmd that is C++
 * (allocator/adapters/exceptions.cpp) is loaded where the allocator brings libstdc++.so: it tells
 * what the exception was before the process ends, and makes of one that stands for out of memory a
 * null pointer. */
#ifndef GMD_EXCEPTIONS_H
#define GMD_EXCEPTIONS_H

#include "gmd_subject.h"

/* Called by the thread that threw, right before the process is aborted. `type`: the exception's, as
 * C++ writes it; `what`: its text, "" where it is neither a std::exception nor a string;
 * `is_bad_alloc`: it is a std::bad_alloc, or derived from it. */
typedef void gmd_exception_fn(void *context, const char *type, const char *what, int is_bad_alloc);

/* Has `tell` called from now on. Does nothing for an allocator without libstdc++.so; one that is
 * linked with the static library has handlers of its own, and its end is a crash. */
void gmd_exceptions_watch(const gmd_subject *subject, const char *lib_directory,
                          gmd_exception_fn *tell, void *context);

/* Replaces subject->malloc by one that gives null for a std::bad_alloc
 * (GMD_PROMISE_THROWS of gmd_abi.h). */
void gmd_exceptions_catch(gmd_subject *subject, const char *lib_directory);

#endif
