/* line_profile.h - memory by line of the script, as pytorch_memlab's LineProfiler shows it: the
 * largest figures while the line ran, functions that it called included, over all its executions.
 *
 * A line hook of Lua opens an interval; the next line of the same function, or its return, closes
 * it. Lines of a called function lie inside the line that called it. */
#ifndef GMD_LINE_PROFILE_H
#define GMD_LINE_PROFILE_H

#include "gmd_inspection.h"
#include "gmd_lua_binding.h"

struct line_profile;

/* NULL: no memory. */
struct line_profile *line_profile_open(void);
void line_profile_close(struct line_profile *profile); /* NULL is fine */

/* Watches the lines of `lua` from here on; the script's first line calls it through C. */
void line_profile_begin(struct line_profile *profile, lua_State *lua);

/* Bytes now, after a request. */
void line_profile_note(struct line_profile *profile, uint64_t active, uint64_t reserved);

/* The script is over: closes what is open and writes the rows, with the lines of `source`. */
void line_profile_write(struct line_profile *profile, const char *source, size_t length,
                        gmd_inspection *out);

#endif
