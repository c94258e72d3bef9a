/* left_behind.h - processes that an allocator under test has started and left behind: those that
 * left its process group (setsid, a second fork) are told by nothing but their parent, which is
 * whoever takes in what is left of it.
 *
 * Thread safety: one thread of a process starts children while one of these is in use. */
#ifndef GMD_LEFT_BEHIND_H
#define GMD_LEFT_BEHIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The children of this process that are not to be touched. */
typedef struct own_children {
    pid_t *list; /* owned */
    size_t count;
} own_children;

/* From now on this process takes in whatever its descendants leave behind. */
void left_behind_take_in(void);

/* Those that there are now; left_behind_free() gives the list back. */
own_children left_behind_note(void);
void left_behind_free(own_children *own);

/* Whether there is a child: none is left behind where there is none. Costs one call. */
bool left_behind_is_any(void);

/* Ends all children of this process but those of `own`, and what they leave behind in turn. How
 * many were ended that still ran, without those of the process group `killed`, which are about to
 * end anyhow. */
uint64_t left_behind_end(const own_children *own, pid_t killed);

#endif
