#include "gmd_page.h"

#include "comparison.h"
#include "findings.h"
#include "history.h"
#include "state.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gmd_status no_memory(gmd_error *error)
{
    return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the page");
}

gmd_status gmd_page_open(gmd_page **page, gmd_error *error)
{
    *page = calloc(1, sizeof **page);
    gmd_status status = *page ? document_begin(&(*page)->document, error) : no_memory(error);
    if (status != GMD_OK) {
        free(*page);
        *page = NULL;
    }
    return status;
}

void gmd_page_free(gmd_page *page)
{
    if (page) {
        document_free(&page->document);
        free(page->jobs);
        free(page);
    }
}

/* --- recorded jobs --------------------------------------------------------------------------- */

/* What the out-of-memories cost the job at most. */
static gmd_oom_outcome worst_outcome(const gmd_diagnosis *d)
{
    gmd_oom_outcome worst = GMD_OOM_SURVIVED;
    for (size_t i = 0; i < d->device_count; i++) {
        const gmd_ooms *ooms = &d->devices[i].ooms;
        for (size_t k = 0; k < ooms->count; k++) {
            worst = gmd_max(worst, ooms->items[k].outcome);
        }
    }
    return worst;
}

/* NULL: it can be judged. */
static const char *why_not_judged(const gmd_diagnosis *d)
{
    return d->snapshot.event_count == 0
               ? "nothing can be judged without events: what is held is known, not how it came"
           : d->snapshot.recorder != GMD_RECORDER_PYTORCH
               ? "not judged: what gmd finds wrong in jobs needs a recording of PyTorch's"
               : NULL;
}

/* An out-of-memory that the job survived is no finding, and nothing that is healthy has. */
static const char *verdict_of(const gmd_diagnosis *d)
{
    if (d->finding_count) {
        return "fail";
    }
    if (gmd_diagnosis_oom_count(d) == 0) {
        return why_not_judged(d) ? "not judged" : "healthy";
    }
    return worst_outcome(d) == GMD_OOM_SURVIVED ? "out of memory, survived" : "out of memory";
}

/* ", 59 requests were refused for lack of memory, which the job survived" */
static int put_refusals(const gmd_diagnosis *d, char *text, size_t size)
{
    static const char *const costs[] = {[GMD_OOM_SURVIVED] = "the job survived",
                                        [GMD_OOM_LOST] = "cost the job iterations",
                                        [GMD_OOM_ENDED] = "ended the job"};
    char count[32];
    uint64_t ooms = gmd_diagnosis_oom_count(d);
    return snprintf(text, size, ", %s request%s refused for lack of memory, which %s",
                    gmd_format_count(ooms, count), ooms == 1 ? " was" : "s were",
                    costs[worst_outcome(d)]);
}

/* "2 findings", "healthy", or why it is neither. */
static int put_findings(const gmd_diagnosis *d, char *text, size_t size)
{
    char count[32];
    const char *unjudged = why_not_judged(d);
    bool has_refusals = gmd_diagnosis_oom_count(d) != 0;
    return d->finding_count
               ? snprintf(text, size, "%s finding%s", gmd_format_count(d->finding_count, count),
                          d->finding_count == 1 ? "" : "s")
               : snprintf(text, size, "%s",
                          unjudged       ? unjudged
                          : has_refusals ? "nothing else was found"
                                         : "healthy");
}

static const char *summary_of(const gmd_diagnosis *d, char *text, size_t size)
{
    char events[32], allocated[24], reserved[24];
    int used =
        snprintf(text, size, "%s events, ", gmd_format_count(d->snapshot.event_count, events));
    used += put_findings(d, text + used, size - (size_t)used);
    if (gmd_diagnosis_oom_count(d)) {
        used += put_refusals(d, text + used, size - (size_t)used);
    }
    if (d->device_count) {
        const gmd_amount *peak = &d->devices[0].facts.recording.peak.amount;
        snprintf(text + used, size - (size_t)used, ", peak %s allocated of %s reserved",
                 gmd_format_size(peak->allocated, allocated),
                 gmd_format_size(peak->reserved, reserved));
    }
    return text;
}

/* Its devices as histories, with what was found in them. */
static gmd_status add_histories(gmd_page *page, const page_job *job, uint32_t input,
                                gmd_error *error)
{
    char name[400];
    const gmd_diagnosis *diagnosis = job->diagnosis;
    gmd_status status = GMD_OK;
    document *to = &page->document;
    history *histories = calloc(diagnosis->device_count + 1, sizeof *histories);
    if (!histories) {
        return no_memory(error);
    }
    for (size_t i = 0; status == GMD_OK && i < diagnosis->device_count; i++) {
        const gmd_device_diagnosis *device = &diagnosis->devices[i];
        status = history_make(&histories[i], to, device, to->lists[DOCUMENT_HISTORIES].count,
                              (history_source){.is_job = true}, error);
        if (status == GMD_OK) {
            int length = snprintf(name, sizeof name, "%.300s", job->name);
            if (diagnosis->device_count > 1) {
                snprintf(name + length, sizeof name - (size_t)length, ", device %u",
                         device->facts.recording.device);
            }
            history_write(&histories[i], name, input, NULL, 0);
        }
    }
    if (status == GMD_OK) {
        findings_of_diagnosis(histories, diagnosis, input);
    }
    for (size_t i = 0; i < diagnosis->device_count; i++) {
        history_free(&histories[i]);
    }
    free(histories);
    return status;
}

gmd_status gmd_page_add_diagnosis(gmd_page *page, const gmd_diagnosis *diagnosis, const char *name,
                                  gmd_error *error)
{
    char summary[400];
    if (!GMD_GROW(&page->jobs, &page->job_capacity, page->job_count + 1)) {
        return no_memory(error);
    }
    uint32_t input = page_add_input(
        page, &(page_input){.name = name,
                            .kind = "snapshot",
                            .verdict = verdict_of(diagnosis),
                            .summary = summary_of(diagnosis, summary, sizeof summary)});
    page_job *job = &page->jobs[page->job_count++];
    *job = (page_job){diagnosis, name};
    return add_histories(page, job, input, error);
}

/* --- the whole ------------------------------------------------------------------------------- */

gmd_status gmd_page_write(gmd_page *page, const char *version, FILE *out, gmd_error *error)
{
    char title[sizeof page->title + 64], more[40] = "";
    gmd_status status = comparison_add(page, error);
    if (page->untitled) {
        snprintf(more, sizeof more, " and %zu more", page->untitled);
    }
    snprintf(title, sizeof title, "gmd: %s%s", page->title, more);
    return status == GMD_OK ? document_write(&page->document, version, title, out, error) : status;
}
