/* gmd_diagnosis.h - a snapshot's diagnosis: history -> facts -> findings. */
#ifndef GMD_DIAGNOSIS_H
#define GMD_DIAGNOSIS_H

#include "gmd_error.h"
#include "gmd_facts.h"
#include "gmd_holders.h"
#include "gmd_job_findings.h"
#include "gmd_ooms.h"

/* One device of a snapshot. */
typedef struct gmd_device_diagnosis {
    gmd_facts facts;
    gmd_job_findings findings;
    gmd_ooms ooms;
} gmd_device_diagnosis;

typedef struct gmd_ranked_finding {
    const gmd_device_diagnosis *device;
    const gmd_job_finding *finding;
} gmd_ranked_finding;

/* A whole snapshot. The devices that have events or segments, the one with the highest peak first;
 * the findings of all, most bytes first. */
typedef struct gmd_diagnosis {
    const char *name;      /* of the file, for people */
    gmd_snapshot snapshot; /* owned */
    gmd_device_diagnosis *devices;
    size_t device_count;
    gmd_ranked_finding *findings;
    size_t finding_count;
} gmd_diagnosis;

/* Diagnoses a snapshot, which is taken over, also on failure. `name` must stay as long as the
 * diagnosis. */
gmd_status gmd_diagnosis_make(gmd_diagnosis *diagnosis, gmd_snapshot *snapshot, const char *name,
                              gmd_error *error);

void gmd_diagnosis_free(gmd_diagnosis *diagnosis);

/* Takes the devices to have `capacity` bytes each, and works out what others held of them at each
 * out-of-memory. Fails where a device had more. */
gmd_status gmd_diagnosis_know_capacity(gmd_diagnosis *diagnosis, uint64_t capacity,
                                       gmd_error *error);

/* Out-of-memories of all devices. */
uint64_t gmd_diagnosis_oom_count(const gmd_diagnosis *diagnosis);

/* Whether the events explain all memory of a device. Where not, its peak is what it was while it
 * was recorded, and may have been higher before or after. */
static inline bool gmd_is_complete(const gmd_recording *r)
{
    return !r->begins_late && !r->ends_early && r->contradictions == 0;
}

/* Whether there is enough in the events to tell a leak of the device: some of them, and three whole
 * iterations where there is a loop, or where the recording is cut. */
bool gmd_can_tell_leak(const gmd_facts *facts);

/* Whether blocks may have been held at a moment that no event and no segment tells of. At the end
 * the segments have all that came before. */
static inline bool gmd_is_lower_bound(const gmd_recording *r, uint32_t moment)
{
    bool is_told = moment == r->last && r->snapshot->segment_count;
    return r->ends_early || (r->begins_late && !is_told);
}

/* The same of the peak: what was before the first event may have been more. */
static inline bool gmd_is_peak_lower_bound(const gmd_recording *r)
{
    return r->ends_early || r->begins_late;
}

#endif
