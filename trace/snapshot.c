#include "gmd_snapshot.h"

#include <stdlib.h>

void gmd_snapshot_free(gmd_snapshot *snapshot)
{
    free(snapshot->events);
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot->conf);
    free(snapshot->annotations);
    gmd_origins_free(&snapshot->origins);
    *snapshot = (gmd_snapshot){0};
}
