/* due.h - whose first entry ends next, among all streams with work: found without looking at each.
 *
 * An entry's end is known when it is the first of its stream, but where it waits: for another
 * stream, until that has come so far, or for a value in memory, until it is there. Schedules that
 * choose, or complete only what is needed, look at the active streams themselves. */
#ifndef GMD_SIM_DUE_H
#define GMD_SIM_DUE_H

#include "stream_table.h"

/* The first entry of an active stream can complete; when it ends. */
bool can_complete(const stream *s, uint64_t *end_ns);

void due_file(stream *s);          /* it has a first entry, and was dropped or never filed */
void due_drop(stream *s);          /* before that entry changes, or is gone */
void due_note_progress(stream *s); /* its head moved: others may wait for that */

/* The stream whose first entry ends next; NULL: none can complete. */
stream *due_first(uint64_t *end_ns);

/* What does not hold of a stream's place; NULL: all does. */
const char *due_violation(const stream *s);

#endif
