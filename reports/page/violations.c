#include "violations.h"

#include "findings.h"

#include "gmd_file.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_trace.h"

#include <ctype.h>
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

/* Whose memory a block has, had before it, or shares since: the latest until the moment. */
static uint32_t other_owner(const gmd_recording *r, uint32_t block, uint32_t moment)
{
    uint32_t other = GMD_NO_LIFETIME;
    const gmd_lifetime *l = &r->lifetimes[block];
    for (uint32_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *o = &r->lifetimes[i];
        bool is_until_then = i != block && o->born <= moment && overlap(o, l);
        if (is_until_then && (other == GMD_NO_LIFETIME || o->born >= r->lifetimes[other].born)) {
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

/* The block of the request, and the other that it has its memory with, or from. */
typedef struct party_pair {
    uint32_t block, other; /* lifetimes; GMD_NO_LIFETIME: there is none */
    const char *label;
} party_pair;

/* `own`: of violation_place. */
static party_pair find_parties(const history *h, uint32_t own)
{
    const gmd_recording *r = &h->facts->recording;
    uint32_t moment = own ? moment_of(h, own) : 0;
    party_pair p = {moment ? r->lifetime_of_event[moment - 1] : GMD_NO_LIFETIME, GMD_NO_LIFETIME,
                    "The moment of the request"};
    if (p.block != GMD_NO_LIFETIME) {
        p.other = other_owner(r, p.block, moment);
        p.label = "The request's block";
    }
    if (p.other != GMD_NO_LIFETIME) {
        p.label = gmd_is_active_at(&r->lifetimes[p.other], moment)
                      ? "The request's block, and the one that has the same memory"
                      : "The request's block, and who had its memory before";
    }
    return p;
}

static void put_blocks(gmd_json *json, const history *h, const party_pair *p)
{
    gmd_json_array(json, "blocks");
    if (p->block != GMD_NO_LIFETIME) {
        gmd_json_u64(json, NULL, h->block_of[p->block]);
    }
    if (p->other != GMD_NO_LIFETIME) {
        gmd_json_u64(json, NULL, h->block_of[p->other]);
    }
    gmd_json_end(json);
}

/* `v`: of the run that the history is of. */
static void put_evidence(gmd_json *json, const gmd_violation *v, const run_history *of)
{
    violation_place place;
    gmd_json_array(json, "evidence");
    if (run_history_find(of, v, &place)) {
        const history *h = &of->histories[place.index];
        const party_pair p = find_parties(h, place.own);
        begin_evidence(json, h, "timeline", place.event, p.label);
        put_blocks(json, h, &p);
        gmd_json_end(json);
        begin_evidence(json, h, "state", place.event, "The allocator after the request");
        put_blocks(json, h, &p);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

/* Why the views show nothing of it. */
static void put_absence(gmd_json *json, const run_history *of)
{
    char text[600];
    if (of->absent) {
        snprintf(text, sizeof text, "The views do not show its blocks: %.500s.", of->absent);
        gmd_json_string(json, NULL, text);
    }
}

/* --- findings -------------------------------------------------------------------------------- */

/* "Two live blocks share bytes (overlap)": what its kind means; the sentence itself is for who
 * looks closer. A verdict of an older gmd has no kind. */
static const char *violation_title(const gmd_violation *v, char *text, size_t size)
{
    const gmd_kind_entry *kind = gmd_kind_find(v->identity.kind);
    if (!kind) {
        return v->message;
    }
    size_t parties = *kind->parties ? strlen(": ") + strlen(kind->parties) : 0;
    snprintf(text, size, "%.*s (%s)", (int)(strlen(kind->meaning) - parties), kind->meaning,
             v->oracle);
    text[0] = (char)toupper((unsigned char)text[0]);
    return text;
}

/* What the oracle said, where the title does not. */
static void put_message(gmd_json *json, const gmd_violation *v)
{
    char text[sizeof v->message + sizeof v->oracle + 8];
    if (gmd_kind_find(v->identity.kind)) {
        snprintf(text, sizeof text, "%s says: %s.", v->oracle, v->message);
        gmd_json_string(json, NULL, text);
    }
}

/* "In rmm510.gmd, at request 4 of 0 to 4.": the numbers that gmd's other reports have. `requests`:
 * 0: not known. */
static void put_moment(gmd_json *json, const char *in, const gmd_violation *v, uint64_t requests)
{
    char text[600], moment[GMD_MOMENT_TEXT], count[60] = "";
    if (!v->is_at_end && v->request < requests) {
        snprintf(count, sizeof count, " of 0 to %" PRIu64, requests - 1);
    }
    snprintf(text, sizeof text, "In %.460s, %s%s%s.", in, v->is_at_end ? "" : "at ",
             gmd_violation_moment(v, moment), count);
    gmd_json_string(json, NULL, text);
}

static void put_known_line(gmd_json *json, const gmd_violation *v)
{
    char text[GMD_IDENTITY_TEXT], line[GMD_IDENTITY_TEXT + 16];
    if (gmd_kind_find(v->identity.kind)) {
        gmd_identity_known_line(&v->identity, text);
        snprintf(line, sizeof line, "To accept it (--known): %s", text);
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
    char title[GMD_IDENTITY_TEXT + 200];
    gmd_json *json = finding_begin(to, input, violation_title(v, title, sizeof title), "violation");
    gmd_json_string(json, "class", class_of(v));
    gmd_json_null(json, "bytes");
    return json;
}

static void put_violation(document *to, const gmd_outcome *o, const gmd_violation *v,
                          const char *title, uint32_t input, const run_history *of)
{
    gmd_json *json = begin_violation(to, v, input);
    gmd_json_array(json, "detail");
    put_message(json, v);
    put_moment(json, title, v, o->requests);
    put_known_line(json, v);
    put_absence(json, of);
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
}

void troubles_of_outcome(document *to, const gmd_outcome *outcome, const char *title,
                         uint32_t input)
{
    if (outcome->check.present && outcome->check.first_difference.present) {
        put_difference(to, &outcome->check, title, input);
    }
    if (outcome->verdict > GMD_FAIL) {
        put_plain(to, input, outcome->error, "note", "error", title);
    }
}

/* --- findings of many runs ------------------------------------------------------------------- */

/* The same violation in the run that the history is of; NULL: it did not show there. */
static const gmd_violation *shown_again(const gmd_violation *v, const run_history *of)
{
    for (uint32_t i = 0; of->outcome && i < of->outcome->violation_count; i++) {
        const gmd_violation *again = &of->outcome->violations[i];
        if (gmd_identity_equal(&again->identity, &v->identity)) {
            return again;
        }
    }
    return NULL;
}

/* `json` has "detail" open. */
static void end_found(gmd_json *json, const gmd_violation *v, const char *replay,
                      const run_history *of)
{
    const gmd_violation *again = shown_again(v, of);
    put_known_line(json, v);
    put_absence(json, of);
    if (!of->absent && !again) {
        gmd_json_string(json, NULL,
                        "For the views the case ran once more, by itself: it did not show then.");
    }
    gmd_json_end(json);
    gmd_json_null(json, "fix");
    if (replay) {
        gmd_json_string(json, "replay", replay);
    }
    put_case(json, v->case_path);
    put_evidence(json, again ? again : v, of);
    gmd_json_end(json);
}

/* `by`: the part and item of a gate that came upon it, as words; empty: it is a campaign's. */
static void put_finding_out(gmd_json *json, const char *by, const gmd_campaign_finding *f)
{
    char text[600], count[32];
    snprintf(text, sizeof text, "Found%s after %.1f s, %s time%s in all.", by, f->seconds,
             gmd_format_count(f->hits, count), f->hits == 1 ? "" : "s");
    gmd_json_string(json, NULL, text);
}

void violation_of_campaign(document *to, const gmd_report *report, size_t index, uint32_t input,
                           const run_history *of)
{
    char replay[2048];
    const gmd_violation *violation = &report->outcomes[0]->violations[index];
    bool is_known = index < report->found_count;
    gmd_json *json = begin_violation(to, violation, input);
    gmd_json_array(json, "detail");
    put_message(json, violation);
    if (is_known) {
        put_finding_out(json, "", &report->found[index]);
    }
    put_moment(json, "the minimised case", violation,
               is_known ? report->found[index].case_requests : 0);
    bool has_replay = gmd_report_replay(report, violation, replay, sizeof replay);
    end_found(json, violation, has_replay ? replay : NULL, of);
}

void finding_of_gate(document *to, const gmd_gate_finding *finding, uint32_t input,
                     const run_history *of)
{
    char by[160];
    const gmd_gate_finding *f = finding;
    gmd_json *json = begin_violation(to, &f->violation, input);
    gmd_json_array(json, "detail");
    put_message(json, &f->violation);
    snprintf(by, sizeof by, " by %s/%s", f->part, f->item);
    put_finding_out(json, by, &(gmd_campaign_finding){f->seconds, f->hits, f->case_requests});
    put_moment(json, "the minimised case", &f->violation, f->case_requests);
    end_found(json, &f->violation, f->replay, of);
}
