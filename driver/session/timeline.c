#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "gmd_timeline.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

gmd_timeline *gmd_timeline_open(gmd_error *error)
{
    gmd_timeline *timeline = mmap(NULL, sizeof *timeline, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (timeline == MAP_FAILED) {
        gmd_fail(error, GMD_NO_MEMORY, "no memory for the timeline of a run: %s", strerror(errno));
        return NULL;
    }
    return timeline;
}

void gmd_timeline_close(gmd_timeline *timeline)
{
    if (timeline) {
        munmap(timeline, sizeof *timeline);
    }
}
