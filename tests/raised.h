/* raised.h - which kinds of verdicts a test has seen raised: into the file that GMD_TEST_RAISED
 * names, for the test that every kind is (tests/oracles/kinds_raised.sh). Without the heap, which a
 * test may have shut. */
#ifndef GMD_TEST_RAISED_H
#define GMD_TEST_RAISED_H

#include "gmd_kind.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void note_raised(const gmd_identity *identity)
{
    const char *path = getenv("GMD_TEST_RAISED");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    char line[GMD_KIND_NAME + 1];
    size_t length = strlen(identity->kind);
    memcpy(line, identity->kind, length);
    line[length] = '\n';
    if (file >= 0 && write(file, line, length + 1) < 0) {
        abort();
    }
    if (file >= 0) {
        close(file);
    }
}

#endif
