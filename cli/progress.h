/* progress.h - what the status lines of long work have in common. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

enum { CLI_LEFT_BYTES = 40 };

/* Into `text`: ", 3 min left", by the part that is `done` of `all` after so many seconds; "" where
 * there is no telling: nothing is done yet, or `all` is 0 (not known). Returns `text`. */
const char *cli_time_left(double done, double all, double seconds, char text[CLI_LEFT_BYTES]);

#endif
