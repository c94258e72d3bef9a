/* gmd_temporary.h - files that are there for a moment only, and must go when a signal ends gmd.
 *
 * Whoever makes such a file announces it before, and forgets it after it was renamed or removed.
 * Only the process that announced a file removes it: a child of fork() leaves its parent's alone.
 * Thread safety: any thread; gmd_temporary_remove_all() may be called by a signal's handler. */
#ifndef GMD_TEMPORARY_H
#define GMD_TEMPORARY_H

/* The path must stay as it is until it is forgotten. Where too many are there already, a signal
 * leaves this one behind. */
void gmd_temporary_announce(const char *path);
void gmd_temporary_forget(const char *path);

/* Removes those of this process. */
void gmd_temporary_remove_all(void);

#endif
