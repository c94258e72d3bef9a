/* gmd_status_line.h - a line on a terminal that is written again and again while work goes on.
 *
 *     fprintf(stderr, GMD_STATUS_BEGIN "%d done" GMD_STATUS_END, done);
 *
 * In between the terminal wraps no line, so that the next one finds it whole, however narrow the
 * window is. */
#ifndef GMD_STATUS_LINE_H
#define GMD_STATUS_LINE_H

#define GMD_STATUS_BEGIN "\r\033[?7l"
#define GMD_STATUS_END   "\033[K\033[?7h"
#define GMD_STATUS_CLEAR "\r\033[K"

#endif
