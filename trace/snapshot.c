#include "gmd_snapshot.h"

#include <stdlib.h>

const char *gmd_recorder_name(unsigned recorder)
{
    static const char *const names[] = {[GMD_RECORDER_PYTORCH] = "pytorch",
                                        [GMD_RECORDER_RMM] = "rmm",
                                        [GMD_RECORDER_PPROF] = "pprof"};
    return recorder < sizeof names / sizeof *names ? names[recorder] : "unknown";
}

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
