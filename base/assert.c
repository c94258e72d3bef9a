#include "gmd_assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

/* As seen from the project's root: some compiler caches name files as seen from the build folder.
 */
static const char *from_root(const char *file)
{
    while (strncmp(file, "../", 3) == 0) {
        file += 3;
    }
    return file;
}

void gmd_assert_fail(const gmd_assertion *what, const char *function)
{
    char line[LINE_MAX_BYTES];
    int length =
        snprintf(line, sizeof line, GMD_ASSERT_PREFIX "%s:%d: %s: %s: %s\n", from_root(what->file),
                 what->line, function, what->expression, what->text);
    size_t bytes = length < 0 ? 0 : (size_t)length;
    if (bytes >= sizeof line) {
        bytes = sizeof line;
        line[sizeof line - 1] = '\n';
    }
    /* One write, so that lines of several processes do not mix. Nobody is left to hear of a
     * failure. */
    ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written;
    abort();
}
