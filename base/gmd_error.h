/* gmd_error.h - how every part of gmd reports a failure.
 *
 * Functions that can fail return gmd_status and take a gmd_error that receives one sentence the
 * user can act on: what was wrong, where (file and byte, line or request), what was expected. On
 * failure nothing is changed unless the function says otherwise. Thread safety: pure functions. */
#ifndef GMD_ERROR_H
#define GMD_ERROR_H

typedef enum gmd_status {
    GMD_OK = 0,
    GMD_BAD_INPUT, /* the user's file, option or plugin: exit status 2 */
    GMD_NO_MEMORY, /* the host ran out of memory: exit status 3 */
    GMD_FAILED,    /* gmd itself or the machine failed: exit status 3 */
    /* The user interrupted it: what was found until then is there, and nothing failed; likewise */
    GMD_INTERRUPTED,
} gmd_status;

typedef struct gmd_error {
    char text[768]; /* always terminated; empty when there is no error */
} gmd_error;

/* Formats the message into `error` (ignored when NULL) and returns `status`, so that a failing
 * function ends with `return gmd_fail(error, GMD_BAD_INPUT, "...", ...)`. It is one line, whatever
 * a file or a library put into it (gmd_utf8_copy_line). */
__attribute__((format(printf, 3, 4))) gmd_status gmd_fail(gmd_error *error, gmd_status status,
                                                          const char *format, ...);

/* Puts "`prefix`: " before the message that `error` already holds. */
void gmd_error_prefix(gmd_error *error, const char *prefix);

#endif
