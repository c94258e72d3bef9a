#include "run_history.h"

#include "gmd_memory_file.h"
#include "gmd_min.h"
#include "gmd_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- read ------------------------------------------------------------------------------------ */

/* What torch.cuda.memory._snapshot() would tell of run number `index`: written and read as that, so
 * that a run's history is made by the same rules as a recorded one. */
static gmd_status snapshot_of(const gmd_report *report, size_t index, gmd_snapshot *snapshot,
                              gmd_error *error)
{
    gmd_report one = *report;
    char *bytes = NULL;
    size_t size = 0;
    one.outcomes = &report->outcomes[index];
    one.journals = &report->journals[index];
    one.outcome_count = 1;
    FILE *out = open_memstream(&bytes, &size);
    gmd_status status = out ? gmd_report_snapshot(&one, out, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    if (out && fclose(out) != 0 && status == GMD_OK) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the history of a run");
    }
    if (status == GMD_OK) {
        status = gmd_snapshot_parse(snapshot, (const uint8_t *)bytes, size,
                                    report->outcomes[index]->name, error);
        snapshot->is_run = true;
    }
    free(bytes);
    return status;
}

static gmd_status make_histories(run_history *h, document *to, history_source source,
                                 gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t first = to->lists[DOCUMENT_HISTORIES].count;
    h->histories = calloc(h->diagnosis.device_count + 1, sizeof *h->histories);
    if (!h->histories) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the history of a run");
    }
    while (status == GMD_OK && h->count < h->diagnosis.device_count) {
        status = history_make(&h->histories[h->count], to, &h->diagnosis.devices[h->count],
                              first + (uint32_t)h->count, source, error);
        h->count += status == GMD_OK;
    }
    return status;
}

gmd_status run_history_open(run_history *h, document *to, const gmd_report *report, size_t index,
                            gmd_error *error)
{
    const gmd_outcome *o = report->outcomes[index];
    *h = (run_history){.outcome = o,
                       .journal = report->journals[index],
                       .is_job = strcmp(o->kind, "trace") != 0}; /* a case is no program */
    const history_source source = {.is_job = h->is_job,
                                   .is_run = true,
                                   .workload = o->name,
                                   .lacks_events = h->journal->dropped != 0,
                                   .counts_requests =
                                       !report->recorded && strcmp(report->device, "sim") == 0};
    gmd_snapshot snapshot = {0};
    gmd_status status = snapshot_of(report, index, &snapshot, error);
    if (status == GMD_OK) {
        status = gmd_diagnosis_make(&h->diagnosis, &snapshot, o->name, error);
    }
    if (status == GMD_OK) {
        status = make_histories(h, to, source, error);
    }
    if (status != GMD_OK) {
        run_history_close(h);
        h->absent = "the run's history cannot be read";
    }
    return status == GMD_BAD_INPUT ? GMD_OK : status;
}

void run_history_close(run_history *h)
{
    for (size_t i = 0; i < h->count; i++) {
        history_free(&h->histories[i]);
    }
    free(h->histories);
    gmd_diagnosis_free(&h->diagnosis);
    *h = (run_history){0};
}

/* --- looked up ------------------------------------------------------------------------------- */

typedef struct event_list {
    const gmd_journal_event *items;
    uint64_t count;
} event_list;

/* Those until the request was done. The allocator under test can have written there. */
static event_list events_until(const run_history *h, uint64_t request)
{
    uint64_t known = h->journal ? gmd_min(h->journal->count, GMD_JOURNAL_EVENT_MAX) : 0;
    event_list list = {h->journal ? h->journal->events : NULL, 0};
    while (list.count < known && list.items[list.count].request <= request) {
        list.count++;
    }
    return list;
}

static bool is_whole(const gmd_journal_event *e)
{
    return e->action && e->action <= GMD_ACTION_OOM + 1 && e->device < GMD_MAX_DEVICES;
}

/* Where the violation does not tell, that of the last event. False: there is none. */
static bool find_device(const gmd_violation *violation, event_list events, uint8_t *device)
{
    bool is_found = violation->device_number != 0;
    *device = is_found ? (uint8_t)(violation->device_number - 1) : 0;
    for (uint64_t i = events.count; i-- > 0 && !is_found;) {
        is_found = is_whole(&events.items[i]);
        *device = events.items[i].device;
    }
    return is_found;
}

static bool is_of_own_block(const gmd_journal_event *e, uint64_t request)
{
    return e->request == request &&
           (e->action == GMD_ACTION_ALLOC + 1 || e->action == GMD_ACTION_FREE_REQUESTED + 1);
}

bool run_history_find(const run_history *h, const gmd_violation *violation, violation_place *place)
{
    uint8_t device;
    const event_list events = events_until(h, violation->request);
    *place = (violation_place){0};
    if (!find_device(violation, events, &device)) {
        return false;
    }
    for (uint64_t i = 0; i < events.count; i++) {
        const gmd_journal_event *e = &events.items[i];
        if (is_whole(e) && e->device == device) {
            place->event++;
            place->own = is_of_own_block(e, violation->request) ? place->event : place->own;
        }
    }
    for (; place->index < h->count; place->index++) {
        const history *of = &h->histories[place->index];
        if (of->facts->recording.device == device) {
            return place->event <= of->event_count;
        }
    }
    return false;
}

/* --- written --------------------------------------------------------------------------------- */

enum { MOST_MARKS = GMD_VIOLATION_MAX };

static size_t list_marks(const run_history *h, size_t device, history_mark marks[MOST_MARKS])
{
    const gmd_outcome *o = h->outcome;
    size_t count = 0;
    for (uint32_t i = 0; i < o->violation_count && i < MOST_MARKS; i++) {
        violation_place place;
        if (run_history_find(h, &o->violations[i], &place) && place.index == device) {
            marks[count++] = (history_mark){place.event, o->violations[i].oracle, "violation"};
        }
    }
    return count;
}

void run_history_write(const run_history *h, const char *title, uint32_t input)
{
    char name[GMD_TITLE_TEXT + 24];
    history_mark marks[MOST_MARKS];
    for (size_t i = 0; i < h->count; i++) {
        history *one = &h->histories[i];
        snprintf(name, sizeof name, "%s", title);
        if (h->count > 1) {
            snprintf(name, sizeof name, "%s, device %u", title, one->facts->recording.device);
        }
        history_write(one, name, input, marks, list_marks(h, i, marks));
    }
}
