#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "gmd_journal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

gmd_journal *gmd_journal_open(gmd_error *error)
{
    gmd_journal *journal = mmap(NULL, sizeof *journal, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (journal == MAP_FAILED) {
        gmd_fail(error, GMD_NO_MEMORY, "no memory for the journal of a run: %s", strerror(errno));
        return NULL;
    }
    return journal;
}

void gmd_journal_close(gmd_journal *journal)
{
    if (journal) {
        munmap(journal, sizeof *journal);
    }
}
