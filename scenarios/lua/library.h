/* library.h - what scripts can call: methods and operators by class, and functions by name. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "gmd_lua_binding.h"

/* All of it (library.c). */
extern const struct script_library script_library;

#endif
