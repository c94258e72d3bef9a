/* diagnosis.c - a snapshot's devices, each with its facts and findings. */
#include "gmd_diagnosis.h"

#include "gmd_trace.h"

#include <stdlib.h>

static bool has_device(const gmd_snapshot *s, uint8_t device)
{
    for (size_t i = 0; i < s->event_count; i++) {
        if (s->events[i].device == device) {
            return true;
        }
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        if (s->segments[i].device == device) {
            return true;
        }
    }
    return false;
}

static int compare_devices(const void *a, const void *b)
{
    const gmd_recording *x = &((const gmd_device_diagnosis *)a)->facts.recording;
    const gmd_recording *y = &((const gmd_device_diagnosis *)b)->facts.recording;
    if (x->peak.amount.allocated != y->peak.amount.allocated) {
        return x->peak.amount.allocated > y->peak.amount.allocated ? -1 : 1;
    }
    return x->device - y->device;
}

static gmd_status fill_device(gmd_device_diagnosis *d, const gmd_snapshot *snapshot, uint8_t device,
                              gmd_error *error)
{
    gmd_status status = gmd_facts_make(&d->facts, snapshot, device, error);
    if (snapshot->recorder != GMD_RECORDER_PYTORCH) {
        return status; /* the classes, and why a request was refused, are about PyTorch */
    }
    if (status == GMD_OK) {
        status = gmd_ooms_find(&d->ooms, &d->facts, error);
    }
    if (status == GMD_OK) {
        status = gmd_job_findings_find(&d->findings, &d->ooms, &d->facts, error);
    }
    return status;
}

static void free_device(gmd_device_diagnosis *d)
{
    gmd_ooms_free(&d->ooms);
    gmd_job_findings_free(&d->findings);
    gmd_facts_free(&d->facts);
}

static gmd_status diagnose_device(gmd_diagnosis *d, uint8_t device, gmd_error *error)
{
    gmd_device_diagnosis *one = &d->devices[d->device_count];
    gmd_status status = fill_device(one, &d->snapshot, device, error);
    if (status != GMD_OK) {
        free_device(one);
        return status;
    }
    d->device_count++;
    return GMD_OK;
}

static gmd_status diagnose_devices(gmd_diagnosis *d, gmd_error *error)
{
    d->devices = calloc(GMD_MAX_DEVICES, sizeof *d->devices);
    if (!d->devices) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", d->name);
    }
    gmd_status status = GMD_OK;
    for (uint8_t device = 0; status == GMD_OK && device < GMD_MAX_DEVICES; device++) {
        if (has_device(&d->snapshot, device)) {
            status = diagnose_device(d, device, error);
        }
    }
    qsort(d->devices, d->device_count, sizeof *d->devices, compare_devices);
    return status;
}

/* Where bytes are equal, the device with the higher peak comes first, and the device's own order
 * holds. */
static int compare_ranked(const void *a, const void *b)
{
    const gmd_ranked_finding *x = a, *y = b;
    if (x->finding->bytes != y->finding->bytes) {
        return x->finding->bytes > y->finding->bytes ? -1 : 1;
    }
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    return (x->finding > y->finding) - (x->finding < y->finding);
}

static gmd_status rank_findings(gmd_diagnosis *d, gmd_error *error)
{
    d->findings = calloc(GMD_MAX_DEVICES * GMD_FINDING_CLASS_COUNT, sizeof *d->findings);
    if (!d->findings) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", d->name);
    }
    for (size_t i = 0; i < d->device_count; i++) {
        const gmd_device_diagnosis *device = &d->devices[i];
        for (size_t k = 0; k < device->findings.count; k++) {
            d->findings[d->finding_count++] =
                (gmd_ranked_finding){device, &device->findings.items[k]};
        }
    }
    qsort(d->findings, d->finding_count, sizeof *d->findings, compare_ranked);
    return GMD_OK;
}

gmd_status gmd_diagnosis_make(gmd_diagnosis *diagnosis, gmd_snapshot *snapshot, const char *name,
                              gmd_error *error)
{
    *diagnosis = (gmd_diagnosis){.name = name, .snapshot = *snapshot};
    *snapshot = (gmd_snapshot){0};
    gmd_status status = diagnose_devices(diagnosis, error);
    if (status == GMD_OK) {
        status = rank_findings(diagnosis, error);
    }
    if (status != GMD_OK) {
        gmd_diagnosis_free(diagnosis);
    }
    return status;
}

void gmd_diagnosis_free(gmd_diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->device_count; i++) {
        free_device(&diagnosis->devices[i]);
    }
    free(diagnosis->devices);
    free(diagnosis->findings);
    gmd_snapshot_free(&diagnosis->snapshot);
    *diagnosis = (gmd_diagnosis){0};
}

gmd_status gmd_diagnosis_know_capacity(gmd_diagnosis *diagnosis, uint64_t capacity,
                                       gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (size_t i = 0; status == GMD_OK && i < diagnosis->device_count; i++) {
        gmd_device_diagnosis *device = &diagnosis->devices[i];
        gmd_error cause;
        status = gmd_ooms_know_capacity(&device->ooms, capacity, &cause);
        if (status != GMD_OK) {
            gmd_fail(error, status, "%s: device %u: %s", diagnosis->name,
                     device->facts.recording.device, cause.text);
        }
    }
    return status;
}

uint64_t gmd_diagnosis_oom_count(const gmd_diagnosis *diagnosis)
{
    uint64_t count = 0;
    for (size_t i = 0; i < diagnosis->device_count; i++) {
        count += diagnosis->devices[i].facts.recording.oom_count;
    }
    return count;
}

/* The one that a cut goes through is not whole. */
static uint32_t count_whole_iterations(const gmd_facts *facts)
{
    const gmd_recording *r = &facts->recording;
    uint32_t shown = gmd_iterations_shown(&facts->iterations);
    uint32_t cut = (uint32_t)r->begins_late + (uint32_t)r->ends_early;
    return shown > cut ? shown - cut : 0;
}

bool gmd_can_tell_leak(const gmd_facts *facts)
{
    enum { LEAST_EVENTS = 32, LEAST_ITERATIONS = 3 };
    const gmd_recording *r = &facts->recording;
    if (facts->snapshot->recorder != GMD_RECORDER_PYTORCH || r->event_count < LEAST_EVENTS) {
        return false;
    }
    bool is_cut = r->begins_late || r->ends_early;
    return count_whole_iterations(facts) >= LEAST_ITERATIONS ||
           (!is_cut && facts->iterations.count == 0);
}
