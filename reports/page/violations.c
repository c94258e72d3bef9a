#include "violations.h"

#include "findings.h"

#include "gmd_file.h"
#include "gmd_min.h"
#include "gmd_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASE_MOST = 1 << 20 }; /* bytes: a case for people is far shorter */

/* --- the case -------------------------------------------------------------------------------- */

/* A result names its cases by their paths, and whose result it is may name any file: what is no
 * trace is not put into a page. */
static char *read_case(const char *path)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_trace trace;
    gmd_error ignored;
    if (!*path || gmd_file_read(path, &text, &size, &ignored) != GMD_OK) {
        return NULL;
    }
    if (size <= CASE_MOST &&
        gmd_trace_parse(&trace, (const char *)text, size, path, &ignored) == GMD_OK) {
        gmd_trace_free(&trace);
        return (char *)text;
    }
    free(text);
    return NULL;
}

static void put_case(gmd_json *json, const char *path)
{
    char *text = read_case(path);
    gmd_json_string(json, "case", text);
    gmd_json_string(json, "case_path", *path ? path : NULL);
    free(text);
}

/* --- the blocks ------------------------------------------------------------------------------ */

bool run_history_find(const run_history *of, uint64_t request, size_t *index, uint32_t *event)
{
    uint32_t counts[GMD_MAX_DEVICES] = {0};
    uint8_t device = 0;
    bool found = false;
    uint64_t count = of->journal ? gmd_min(of->journal->count, GMD_JOURNAL_EVENT_MAX) : 0;
    for (uint64_t i = 0; i < count; i++) { /* the allocator under test can have written there */
        const gmd_journal_event *e = &of->journal->events[i];
        if (e->request > request) {
            break;
        }
        if (e->action && e->action <= GMD_ACTION_OOM + 1 && e->device < GMD_MAX_DEVICES) {
            counts[e->device]++;
            device = e->device;
            found = true;
        }
    }
    for (size_t i = 0; found && i < of->count; i++) {
        if (of->histories[i].facts->recording.device == device &&
            counts[device] <= of->histories[i].event_count) {
            *index = i;
            *event = counts[device];
            return true;
        }
    }
    return false;
}

/* The moment of an event: the first that has its number. */
static uint32_t moment_of(const history *h, uint32_t event)
{
    uint32_t low = 0, high = (uint32_t)h->facts->snapshot->event_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->event_of[middle] < event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool overlap(const gmd_lifetime *a, const gmd_lifetime *b)
{
    return a->address < b->address + gmd_max(b->size, b->requested) &&
           b->address < a->address + gmd_max(a->size, a->requested);
}

/* Who has, or had until then, the memory that a block got: the latest before it. */
static uint32_t other_owner(const gmd_recording *r, uint32_t block)
{
    uint32_t other = GMD_NO_LIFETIME;
    const gmd_lifetime *l = &r->lifetimes[block];
    for (uint32_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *o = &r->lifetimes[i];
        bool is_earlier = i != block && o->born <= l->born && overlap(o, l);
        if (is_earlier && (other == GMD_NO_LIFETIME || o->born >= r->lifetimes[other].born)) {
            other = i;
        }
    }
    return other;
}

static void begin_evidence(gmd_json *json, const history *h, const char *view, uint32_t event,
                           const char *label)
{
    gmd_json_row(json, NULL);
    gmd_json_string(json, "view", view);
    gmd_json_u64(json, "history", h->number);
    gmd_json_u64(json, "event", event);
    gmd_json_string(json, "label", label);
}

static void put_parties(gmd_json *json, const history *h, uint32_t event)
{
    const gmd_recording *r = &h->facts->recording;
    uint32_t moment = moment_of(h, event);
    uint32_t block = moment ? r->lifetime_of_event[moment - 1] : GMD_NO_LIFETIME;
    uint32_t other = block == GMD_NO_LIFETIME ? GMD_NO_LIFETIME : other_owner(r, block);
    gmd_json_array(json, "blocks");
    if (block != GMD_NO_LIFETIME) {
        gmd_json_u64(json, NULL, h->block_of[block]);
    }
    if (other != GMD_NO_LIFETIME) {
        gmd_json_u64(json, NULL, h->block_of[other]);
    }
    gmd_json_end(json);
}

static void put_evidence(gmd_json *json, const gmd_violation *v, const run_history *of)
{
    size_t index;
    uint32_t event;
    gmd_json_array(json, "evidence");
    if (of && run_history_find(of, v->request, &index, &event)) {
        const history *h = &of->histories[index];
        begin_evidence(json, h, "timeline", event,
                       "The request's block, and who had its memory before");
        put_parties(json, h, event);
        gmd_json_end(json);
        begin_evidence(json, h, "state", event, "The allocator after the request");
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

/* --- findings -------------------------------------------------------------------------------- */

static void put_meaning(gmd_json *json, const gmd_violation *v)
{
    char text[GMD_IDENTITY_TEXT], line[GMD_IDENTITY_TEXT + 16];
    const gmd_kind_entry *kind = gmd_kind_find(v->identity.kind);
    if (kind) {
        snprintf(text, sizeof text, "%s: %.300s.", kind->name, kind->meaning);
        gmd_json_string(json, NULL, text);
        gmd_identity_known_line(&v->identity, text);
        snprintf(line, sizeof line, "For --known: %s", text);
        gmd_json_string(json, NULL, line);
    }
}

/* A verdict of an older gmd has no kind: then the oracle names it. */
static const char *class_of(const gmd_violation *v)
{
    return *v->identity.kind ? v->identity.kind : v->oracle;
}

static gmd_json *begin_violation(document *to, const gmd_violation *v, uint32_t input)
{
    gmd_json *json = finding_begin(to, input, v->message, "violation");
    gmd_json_string(json, "class", class_of(v));
    gmd_json_null(json, "bytes");
    return json;
}

static void put_violation(document *to, const gmd_outcome *o, const gmd_violation *v,
                          const char *title, uint32_t input, const run_history *of)
{
    char text[600];
    gmd_json *json = begin_violation(to, v, input);
    gmd_json_array(json, "detail");
    if (v->request < o->requests) {
        snprintf(text, sizeof text, "In %.460s, with request %" PRIu64 " of %" PRIu64 ".", title,
                 v->request, o->requests);
    } else {
        snprintf(text, sizeof text, "In %.460s, at the end.", title);
    }
    gmd_json_string(json, NULL, text);
    put_meaning(json, v);
    gmd_json_end(json);
    gmd_json_null(json, "fix");
    put_case(json, v->case_path);
    put_evidence(json, v, of);
    gmd_json_end(json);
}

/* A finding without a case and evidence. */
static void put_plain(document *to, uint32_t input, const char *title, const char *kind,
                      const char *class, const char *detail)
{
    gmd_json *json = finding_begin(to, input, title, kind);
    gmd_json_string(json, "class", class);
    gmd_json_null(json, "bytes");
    gmd_json_array(json, "detail");
    gmd_json_string(json, NULL, detail);
    gmd_json_end(json);
    gmd_json_null(json, "fix");
    gmd_json_null(json, "case");
    gmd_json_array(json, "evidence");
    gmd_json_end(json);
    gmd_json_end(json);
}

static void put_difference(document *to, const gmd_check *check, const char *run, uint32_t input)
{
    char title[600], detail[700];
    snprintf(title, sizeof title,
             "The allocator does not do what was recorded: request %" PRIu64 ", %s",
             check->first_difference.request, check->first_difference.what);
    snprintf(detail, sizeof detail, "In %.200s: %s: expected %s, got %s.", run,
             check->first_difference.text, check->first_difference.expected,
             check->first_difference.got);
    put_plain(to, input, title, "violation", check->first_difference.what, detail);
}

void violations_of_outcome(document *to, const gmd_outcome *outcome, const char *title,
                           uint32_t input, const run_history *of)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        put_violation(to, outcome, &outcome->violations[i], title, input, of);
    }
    if (outcome->check.present && outcome->check.first_difference.present) {
        put_difference(to, &outcome->check, title, input);
    }
    if (outcome->verdict > GMD_FAIL) {
        put_plain(to, input, outcome->error, "note", "error", title);
    }
}

void violations_of_gate(document *to, const gmd_gate_result *gate, uint32_t input)
{
    char text[600];
    for (size_t i = 0; i < gate->finding_count; i++) {
        const gmd_gate_finding *f = &gate->findings[i];
        gmd_json *json = begin_violation(to, &f->violation, input);
        gmd_json_array(json, "detail");
        snprintf(text, sizeof text,
                 "Found by %s/%s after %.1f s, %" PRIu64 " time%s in all; the case has %zu "
                 "request%s.",
                 f->part, f->item, f->seconds, f->hits, f->hits == 1 ? "" : "s", f->case_requests,
                 f->case_requests == 1 ? "" : "s");
        gmd_json_string(json, NULL, text);
        put_meaning(json, &f->violation);
        gmd_json_end(json);
        gmd_json_null(json, "fix");
        gmd_json_string(json, "replay", f->replay);
        put_case(json, f->violation.case_path);
        put_evidence(json, &f->violation, NULL);
        gmd_json_end(json);
    }
}
