/* gmd_status_line.h - how far long work has come, on standard error.
 *
 * On a terminal it is one line that is written again and again, of 80 columns at most, which an
 * earlier one never outlives. In a file or a pipe each is a line of its own, once a minute. The
 * time comes first. Thread safety: one line, one thread. */
#ifndef GMD_STATUS_LINE_H
#define GMD_STATUS_LINE_H

/* For lines that are written by hand: in between the terminal wraps none. */
#define GMD_STATUS_BEGIN "\r\033[?7l"
#define GMD_STATUS_END   "\033[K\033[?7h"
#define GMD_STATUS_CLEAR "\r\033[K"

typedef struct gmd_status_line { /* zero-initialised: nothing is shown yet */
    double next_shown;           /* seconds of the work */
    int is_on_terminal;          /* there is one to be cleared */
} gmd_status_line;

/* After so many seconds of work: "12 s, TEXT". Mostly it does nothing, for nobody reads more often;
 * what does not fit is cut off. */
__attribute__((format(printf, 3, 4))) void gmd_status_show(gmd_status_line *line, double seconds,
                                                           const char *format, ...);

/* Before anything else is written, and at the end. */
void gmd_status_clear(gmd_status_line *line);

#endif
