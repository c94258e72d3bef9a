/* raised.h - which kinds of verdicts a test has seen raised: into the file that GMD_TEST_RAISED
 * names, for the test that every kind is (tests/oracles/kinds_raised.sh). Their parties must be in
 * the list of oracles. Without the heap, which a test may have shut. */
#ifndef GMD_TEST_RAISED_H
#define GMD_TEST_RAISED_H

#include "gmd_kind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void check_parties(const gmd_identity *identity)
{
    const gmd_kind_entry *kind = gmd_kind_find(identity->kind);
    for (uint32_t i = 0; kind && i < identity->party_count; i++) {
        if (!gmd_kind_has_party(kind, identity->parties[i].name)) {
            fprintf(stderr, "%s has no party %s in the list of oracles\n", kind->name,
                    identity->parties[i].name);
            abort();
        }
    }
}

/* Before the first: what an earlier run of the test has left does not count. */
static inline void forget_raised(void)
{
    const char *path = getenv("GMD_TEST_RAISED");
    if (path) {
        (void)remove(path);
    }
}

static inline void note_raised(const gmd_identity *identity)
{
    check_parties(identity);
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
