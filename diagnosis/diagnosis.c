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

/* The lines of what grows without end: what they hold at an out-of-memory has leaked. */
static size_t list_leaks(const gmd_job_findings *findings, uint32_t *frames)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const gmd_job_finding *finding = &findings->items[i];
        for (size_t k = 0; finding->bytes_per_iteration && k < finding->where_count; k++) {
            frames[count++] = finding->where[k].frame;
        }
    }
    return count;
}

static gmd_status fill_device(gmd_device_diagnosis *d, const gmd_snapshot *snapshot, uint8_t device,
                              gmd_error *error)
{
    uint32_t leaks[GMD_FINDING_CLASS_COUNT * GMD_FINDING_PLACES];
    gmd_status status = gmd_facts_make(&d->facts, snapshot, device, error);
    if (snapshot->recorder != GMD_RECORDER_PYTORCH) {
        return status; /* the classes, and why a request was refused, are about PyTorch */
    }
    if (status == GMD_OK) {
        status = gmd_job_findings_find(&d->findings, &d->facts, error);
    }
    if (status == GMD_OK) {
        status = gmd_ooms_find(&d->ooms, &d->facts, leaks, list_leaks(&d->findings, leaks), error);
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

gmd_status gmd_diagnosis_make(gmd_diagnosis *diagnosis, gmd_snapshot *snapshot, const char *name,
                              gmd_error *error)
{
    *diagnosis = (gmd_diagnosis){.name = name, .snapshot = *snapshot};
    *snapshot = (gmd_snapshot){0};
    gmd_status status = diagnose_devices(diagnosis, error);
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
    gmd_snapshot_free(&diagnosis->snapshot);
    *diagnosis = (gmd_diagnosis){0};
}

size_t gmd_diagnosis_finding_count(const gmd_diagnosis *diagnosis)
{
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->device_count; i++) {
        count += diagnosis->devices[i].findings.count;
    }
    return count;
}
