/* Plays a history and compares each request with what was recorded. */
#include "gmd_check.h"

#include "check_end.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one request ------------------------------------------------------------------------- */

static const char *answer_text(uint64_t address, bool is_oom, char text[64])
{
    if (is_oom) {
        snprintf(text, 64, "out of memory");
    } else {
        snprintf(text, 64, "0x%" PRIx64, address);
    }
    return text;
}

static bool check_answer(checker *c, size_t i, gmd_served served)
{
    const gmd_recorded *recorded = &c->input->history->recorded[i];
    bool is_oom = served == GMD_OUT_OF_MEMORY;
    uint64_t address = session_address(c->session, c->input->history->trace.requests[i].block);
    bool same = is_oom == recorded->is_oom &&
                (is_oom || !c->sees_addresses || address == recorded->address);
    if (!same) {
        char expected[64], got[64];
        checker_differ(c, i, is_oom != recorded->is_oom ? "oom" : "address",
                       answer_text(recorded->address, recorded->is_oom, expected), "%s",
                       answer_text(address, is_oom, got));
    }
    return same;
}

static const char *call_text(const gmd_device_call *call, char text[100])
{
    static const char *const names[2][2] = {{"segment_alloc", "segment_free"},
                                            {"segment_map", "segment_unmap"}};
    snprintf(text, 100, "%s 0x%" PRIx64 " of %" PRIu64 " B", names[call->is_mapping][call->is_free],
             call->address, call->size);
    return text;
}

static gmd_device_call recorded_call(const gmd_recorded_call *call)
{
    return (gmd_device_call){.is_free = call->is_free,
                             .is_mapping = call->is_mapping,
                             .address = call->address,
                             .size = call->size};
}

/* Adds the next call to `joined` where it goes on with the same pages: a range is mapped with a
 * call for each of its handles, and recorded as one event. */
static bool joins(gmd_device_call *joined, const gmd_device_call *next)
{
    if (!joined->is_mapping || !next->is_mapping || joined->is_free != next->is_free ||
        joined->address + joined->size != next->address) {
        return false;
    }
    joined->size += next->size;
    return true;
}

/* Each takes the call at *at and what joins it. False: there is none. */
static bool next_recorded(const gmd_history *h, const gmd_recorded *r, size_t *at,
                          gmd_device_call *call)
{
    if (*at == r->call_count) {
        return false;
    }
    *call = recorded_call(&h->calls[r->first_call + (*at)++]);
    while (*at < r->call_count) {
        gmd_device_call next = recorded_call(&h->calls[r->first_call + *at]);
        if (!joins(call, &next)) {
            break;
        }
        (*at)++;
    }
    return true;
}

static bool next_seen(const gmd_device_call *calls, size_t count, size_t *at, gmd_device_call *call)
{
    if (*at == count) {
        return false;
    }
    *call = calls[(*at)++];
    while (*at < count && joins(call, &calls[*at])) {
        (*at)++;
    }
    return true;
}

static bool is_same_call(const gmd_device_call *a, const gmd_device_call *b)
{
    return a->is_free == b->is_free && a->is_mapping == b->is_mapping && a->address == b->address &&
           a->size == b->size;
}

static bool check_calls(checker *c, size_t i)
{
    const gmd_recorded *recorded = &c->input->history->recorded[i];
    size_t count, want_at = 0, got_at = 0;
    const gmd_device_call *calls = session_device_calls(c->session, &count);
    for (;;) {
        gmd_device_call want, got;
        bool has_want = next_recorded(c->input->history, recorded, &want_at, &want);
        bool has_got = next_seen(calls, count, &got_at, &got);
        if (!has_want && !has_got) {
            break;
        }
        if (has_want && has_got && is_same_call(&want, &got)) {
            c->result->device_events++;
            continue;
        }
        char expected[100], seen[100];
        bool is_free = has_want ? want.is_free : got.is_free;
        checker_differ(c, i, is_free ? "segment_free" : "segment_alloc",
                       has_want ? call_text(&want, expected) : "no further device call", "%s",
                       has_got ? call_text(&got, seen) : "no further device call");
        return false;
    }
    c->result->device_events += recorded->is_oom;
    return true;
}

/* --- statistics -------------------------------------------------------------------------- */

static bool check_figure(checker *c, uint64_t request, const char *name, uint64_t expected,
                         uint64_t got)
{
    c->result->figures_compared++;
    if (expected == got) {
        return true;
    }
    char text[120];
    snprintf(text, sizeof text, "%s = %" PRIu64, name, expected);
    checker_differ(c, request, "statistics", text, "%s = %" PRIu64, name, got);
    return false;
}

/* Lines and requests must go together, or the figures would be compared across. */
static bool is_operation_of(checker *c, size_t i, const gmd_truth_op *t)
{
    static const char *const kinds[] = {"alloc", "free", "oom"};
    const gmd_request *r = &c->input->history->trace.requests[i];
    const gmd_recorded *recorded = &c->input->history->recorded[i];
    gmd_truth_kind kind = r->op == GMD_OP_FREE ? GMD_TRUTH_FREE
                          : recorded->is_oom   ? GMD_TRUTH_OOM
                                               : GMD_TRUTH_ALLOC;
    if (kind == (gmd_truth_kind)t->kind &&
        (kind != GMD_TRUTH_ALLOC || (r->bytes == t->bytes && recorded->address == t->address))) {
        return true;
    }
    char expected[200];
    snprintf(expected, sizeof expected,
             "line %u of the operations file: %s of %" PRIu64 " B at 0x%" PRIx64, t->line,
             kinds[t->kind % 3], t->bytes, t->address);
    checker_differ(c, i, "operations", expected,
                   "%s of %" PRIu64 " B at 0x%" PRIx64 " in the history", kinds[kind],
                   r->op == GMD_OP_FREE ? 0 : r->bytes, recorded->address);
    return false;
}

/* Those that gave nothing back are none of the history's requests. */
static void pass_empty_caches(checker *c)
{
    const gmd_truth *truth = c->input->truth;
    while (c->next_op < truth->op_count && truth->ops[c->next_op].kind == GMD_TRUTH_EMPTY_CACHE) {
        c->next_op++;
    }
}

/* The operations file has a line for each allocation and free that the recorder made. */
static bool check_operation(checker *c, size_t i)
{
    const gmd_truth *truth = c->input->truth;
    uint8_t op = c->input->history->trace.requests[i].op;
    if (!truth || !truth->op_count || (op != GMD_OP_ALLOC && op != GMD_OP_FREE)) {
        return true;
    }
    pass_empty_caches(c);
    if (c->next_op == truth->op_count) {
        if (op == GMD_OP_ALLOC) { /* after its last line the recorder only freed what was left */
            checker_differ(c, i, "operations", "the end of the operations file", "an allocation");
        }
        return op == GMD_OP_FREE;
    }
    const gmd_truth_op *t = &truth->ops[c->next_op++];
    if (!is_operation_of(c, i, t)) {
        return false;
    }
    const gmd_stats *s = &c->session->figures.stats[0];
    return check_figure(c, i, "allocated_bytes", t->allocated, s->allocated_bytes) &&
           check_figure(c, i, "reserved_bytes", t->reserved, s->reserved_bytes) &&
           check_figure(c, i, "segment_count", t->segments, s->segment_count) &&
           check_figure(c, i, "active_bytes", t->active, s->active_bytes) &&
           check_figure(c, i, "inactive_split_bytes", t->inactive_split, s->inactive_split_bytes) &&
           check_figure(c, i, "num_alloc_retries", t->retries, s->num_alloc_retries) &&
           check_figure(c, i, "num_ooms", t->ooms, s->num_ooms);
}

static bool is_at_phase(const checker *c, const gmd_truth_phase *p)
{
    gmd_sink_memory m;
    return gmd_session_memory(c->session, &m) && m.allocated == p->allocated &&
           m.max_allocated == p->max_allocated && m.reserved == p->reserved &&
           m.max_reserved == p->max_reserved;
}

/* The recorder read the figures at named points, which a snapshot does not hold: a phase is at the
 * first request, after the phase before it, that has exactly its four figures. Where the maxima
 * fall from one phase to the next, the recorder called reset_peak_memory_stats() in between. */
static void find_phase(checker *c)
{
    const gmd_truth *truth = c->input->truth;
    while (truth && c->next_phase < truth->phase_count &&
           is_at_phase(c, &truth->phases[c->next_phase])) {
        const gmd_truth_phase *here = &truth->phases[c->next_phase++];
        gmd_session_phase(c->session, here->label);
        const gmd_truth_phase *next = c->next_phase < truth->phase_count ? here + 1 : NULL;
        if (next && next->max_allocated < here->max_allocated &&
            gmd_session_reset_peaks(c->session, 0)) {
            gmd_session_note(c->session, "peaks were reset after phase \"%s\"", here->label);
            return;
        }
    }
}

typedef struct final_figures {
    checker *c;
    bool compares_current;
} final_figures;

static void check_final_figure(void *context, const char *name, uint64_t value)
{
    final_figures *f = context;
    checker *c = f->c;
    uint64_t expected;
    if (!c->result->exact || !gmd_truth_stat(c->input->truth, name, &expected)) {
        return;
    }
    bool is_current = strstr(name, ".current") != NULL;
    if (is_current && !f->compares_current) {
        return;
    }
    if (strcmp(name, "num_sync_all_streams") == 0 && expected > value) {
        /* An empty_cache() that finds nothing to give back leaves no event to infer it from. */
        gmd_session_note(c->session,
                         "%" PRIu64 " empty_cache() call(s) gave nothing back and left no event",
                         expected - value);
        return;
    }
    if (expected != value && c->input->history->waits_again && c->input->history->deferred_frees &&
        strncmp(name, "inactive_split", strlen("inactive_split")) == 0 && !is_current) {
        gmd_session_note(c->session,
                         "%s is %" PRIu64 ", not %" PRIu64 ": frees of one moment were completed "
                         "in another order",
                         name, value, expected);
        return;
    }
    check_figure(c, c->result->requests, name, expected, value);
}

static uint64_t snapshot_allocated(const gmd_snapshot *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->segment_count; i++) {
        sum += s->segments[i].device == 0 ? s->segments[i].allocated_size : 0;
    }
    return sum;
}

/* NAME.json was written a moment after the snapshot. Where blocks were freed in between, its
 * current values are of a later moment; peaks and counts hold. */
static void check_final_statistics(checker *c)
{
    const gmd_truth *truth = c->input->truth;
    const gmd_subject *subject = gmd_session_subject(c->session);
    if (!truth || !truth->stat_count || !subject->memory_stats || !c->result->exact) {
        return;
    }
    uint64_t current = 0;
    final_figures f = {.c = c};
    f.compares_current = gmd_truth_stat(truth, "allocated_bytes.all.current", &current) &&
                         current == snapshot_allocated(c->input->snapshot);
    if (!f.compares_current) {
        gmd_session_note(c->session,
                         "the recorder read its current values after the history's end: "
                         "peaks and counts were compared");
    }
    subject->memory_stats(0, check_final_figure, &f);
    if (c->result->exact && c->next_phase < truth->phase_count) {
        char expected[200];
        const gmd_truth_phase *p = &truth->phases[c->next_phase];
        snprintf(expected, sizeof expected,
                 "phase \"%.40s\": allocated %" PRIu64 ", max %" PRIu64 ", reserved %" PRIu64
                 ", max %" PRIu64,
                 p->label, p->allocated, p->max_allocated, p->reserved, p->max_reserved);
        checker_differ(c, c->result->requests, "statistics", expected,
                       "no request after which it is so");
    }
    c->result->figures_compared += 4 * c->next_phase;
    c->result->statistics_checked = true;
}

/* --- whether it can be checked ------------------------------------------------------------ */

/* What no allocator can be checked with: the history itself does not hold it. */
static gmd_status check_is_whole(const gmd_history *history, const gmd_snapshot *snapshot,
                                 const char *name, gmd_error *error)
{
    if (!snapshot->has_events) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: holds no history (torch.cuda.memory._record_memory_history was off): "
                        "there is nothing to replay",
                        name);
    }
    if (history->orphan_frees || history->orphan_segments) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "%s: %" PRIu64 " frees are of blocks and %" PRIu64 " segments given back are "
            "from before the recording, the first at request %" PRIu64
            ": --check needs a history from the start",
            name, history->orphan_frees, history->orphan_segments, history->first_orphan);
    }
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        const gmd_snapshot_segment *segment = &snapshot->segments[i];
        if (segment->pool_id[0] || segment->pool_id[1]) {
            return gmd_fail(error, GMD_BAD_INPUT,
                            "%s: segment 0x%" PRIx64 " is of a private pool, which gmd does not "
                            "make: --check cannot judge it",
                            name, segment->address);
        }
    }
    return GMD_OK;
}

gmd_status gmd_check_possible(const gmd_history *history, const gmd_snapshot *snapshot,
                              const char *name, gmd_error *error)
{
    bool has_conf = snapshot->conf && *snapshot->conf;
    if (snapshot->recorder != GMD_RECORDER_PYTORCH) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%s: was not recorded by PyTorch (%s): it does not say which segments the "
                        "allocator had; --check cannot judge it",
                        name, gmd_recorder_name(snapshot->recorder));
    }
    gmd_status status = check_is_whole(history, snapshot, name, error);
    if (status == GMD_OK && snapshot->setting && !has_conf) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "%s: recorded with '%s', set while the job ran: the snapshot does not "
                          "hold the string that was given; --check cannot judge it",
                          name, snapshot->setting);
    }
    if (status == GMD_OK && history->deferred_frees && !history->waits_again) {
        status = gmd_fail(error, GMD_BAD_INPUT,
                          "%s: %" PRIu64 " frees waited for other streams (record_stream), the "
                          "first in request %" PRIu64 ": the snapshot does not hold which; --check "
                          "cannot judge it",
                          name, history->deferred_frees, history->first_deferred);
    }
    return status;
}

/* --- quirks ------------------------------------------------------------------------------ */

static bool set_quirks(checker *c)
{
    const gmd_subject *subject = gmd_session_subject(c->session);
    bool has_quirks = subject->set_quirk && subject->quirk_count;
    for (size_t i = 0; has_quirks && i < GMD_QUIRK_KINDS; i++) {
        subject->set_quirk(quirk_kinds[i].name, (c->input->quirks >> i & 1) != 0);
    }
    const gmd_known *known = c->session->options->judging.known;
    if (has_quirks && known && known->quirk_count) {
        *known->quirk_count = subject->quirk_count;
    }
    return has_quirks;
}

static gmd_check_quirk *quirk_of(gmd_check *result, const char *name)
{
    uint32_t i = 0;
    while (i < result->quirk_count && strcmp(result->quirks[i].name, name) != 0) {
        i++;
    }
    if (i == result->quirk_count) {
        snprintf(result->quirks[i].name, sizeof result->quirks[i].name, "%s", name);
        result->quirk_count++;
    }
    return &result->quirks[i];
}

/* Which of the quirks mattered in this request. */
static void note_quirks(checker *c, size_t request)
{
    const gmd_subject *subject = gmd_session_subject(c->session);
    for (size_t i = 0; i < GMD_QUIRK_KINDS; i++) {
        int64_t count = subject->quirk_count(quirk_kinds[i].name);
        if (count > c->quirk_counts[i]) {
            gmd_check_quirk *q = quirk_of(c->result, quirk_kinds[i].name);
            if (q->count < sizeof q->requests / sizeof *q->requests) {
                q->requests[q->count] = request;
            }
            q->count++;
            c->quirk_counts[i] = count;
        }
    }
}

/* --- all of it --------------------------------------------------------------------------- */

static bool check_request(checker *c, size_t i)
{
    const gmd_request *r = &c->input->history->trace.requests[i];
    gmd_served served = gmd_session_request(c->session, r);
    if (c->has_quirks && r->op == GMD_OP_ALLOC) {
        note_quirks(c, i);
    }
    if (served == GMD_STOP) {
        c->result->exact = false;
        c->result->is_cut_off = session_outcome(c->session)->violation_count > 0;
        c->result->cut_off_at = i;
        return false;
    }
    if ((r->op == GMD_OP_ALLOC && !check_answer(c, i, served)) ||
        (c->sees_addresses && !check_calls(c, i)) ||
        (c->session->figures.has_stats && !check_operation(c, i))) {
        return false;
    }
    c->result->matched++;
    find_phase(c);
    return true;
}

gmd_status gmd_check_history(void *context, gmd_session *session, gmd_error *error)
{
    const gmd_check_input *input = context;
    const gmd_trace *trace = &input->history->trace;
    gmd_check *result = &session_outcome(session)->check;
    *result = (gmd_check){.present = true,
                          .exact = true,
                          .requests = trace->count,
                          .limit_bytes = input->history->limit_bytes,
                          .limit_inferred = input->history->limit_inferred};
    checker c = {.input = input,
                 .session = session,
                 .result = result,
                 .sees_addresses = gmd_session_runtime(session)->sim != NULL};
    c.has_quirks = set_quirks(&c);
    c.knows_places = c.sees_addresses || gmd_session_subject(session)->order_segments;
    for (size_t i = 0; i < trace->count; i++) {
        if (!check_request(&c, i)) {
            return GMD_OK;
        }
    }
    if (input->truth) {
        pass_empty_caches(&c);
    }
    if (input->truth && c.next_op < input->truth->op_count) {
        checker_differ(&c, trace->count, "operations", "more lines in the operations file",
                       "the end of the history");
    }
    check_final_statistics(&c);
    return result->exact ? check_end_state(&c, error) : GMD_OK;
}
