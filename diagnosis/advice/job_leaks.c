#include "job_leaks.h"

#include <stdio.h>
#include <stdlib.h>

static gmd_advised_leak leak_of(const gmd_ranked_finding *ranked)
{
    const gmd_job_finding *finding = ranked->finding;
    gmd_advised_leak leak = {.class = finding->class,
                             .bytes = finding->bytes,
                             .bytes_per_iteration = finding->bytes_per_iteration};
    if (finding->where_count && finding->where[0].frame != GMD_NO_PLACE) {
        gmd_place place = gmd_places_get(&ranked->device->facts.places, finding->where[0].frame);
        snprintf(leak.file, sizeof leak.file, "%s", place.file);
        leak.line = place.line;
        leak.is_line_inferred = finding->where[0].is_inferred;
    }
    return leak;
}

static bool is_left_out(const gmd_advised_leak *leak, const job_change *change)
{
    return change->file && leak->line == change->line && gmd_is_path_end(leak->file, change->file);
}

gmd_status job_leaks_list(job_leaks *leaks, const gmd_diagnosis *diagnosis,
                          const job_change *change, gmd_error *error)
{
    *leaks = (job_leaks){.items = calloc(diagnosis->finding_count + 1, sizeof *leaks->items)};
    if (!leaks->items) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for what leaks");
    }
    for (size_t i = 0; i < diagnosis->finding_count; i++) {
        const gmd_advised_leak leak = leak_of(&diagnosis->findings[i]);
        if (gmd_finding_is_leak(leak.class) && !is_left_out(&leak, change)) {
            leaks->items[leaks->count++] = leak;
        }
    }
    return GMD_OK;
}
