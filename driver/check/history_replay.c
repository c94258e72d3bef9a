#include "gmd_history_replay.h"

#include "gmd_session_state.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct refusals {
    uint64_t count;        /* requests that are refused now */
    uint64_t added, first; /* those of them that the recorded allocator served; the first's index */
    uint64_t left_out;     /* that it refused, and that are served now */
} refusals;

static void count_answer(refusals *r, const gmd_recorded *recorded, uint64_t index,
                         gmd_served served)
{
    bool is_refused = served == GMD_OUT_OF_MEMORY;
    r->count += is_refused;
    r->left_out += !is_refused && recorded->is_oom;
    if (is_refused && !recorded->is_oom && r->added++ == 0) {
        r->first = index;
    }
}

/* False: the run is over before the end of the history. */
static bool play(gmd_session *session, const gmd_history *history, refusals *r)
{
    for (size_t i = 0; i < history->trace.count; i++) {
        const gmd_request *request = &history->trace.requests[i];
        gmd_served served = gmd_session_request(session, request);
        if (served == GMD_STOP) {
            return false;
        }
        if (request->op == GMD_OP_ALLOC) {
            count_answer(r, &history->recorded[i], i, served);
        }
    }
    return true;
}

/* What is not known is left out. */
static void add_figure(char *text, size_t size, const char *before, uint64_t value,
                       const char *after)
{
    size_t length = strlen(text);
    if (value != GMD_STAT_UNKNOWN) {
        snprintf(text + length, size - length, "%s%" PRIu64 "%s", before, value, after);
    }
}

static void add_bytes(char *text, size_t size, const char *before, uint64_t bytes,
                      const char *after)
{
    size_t length = strlen(text);
    char number[24];
    if (bytes != GMD_STAT_UNKNOWN) {
        snprintf(text + length, size - length, "%s%s%s", before, gmd_format_size(bytes, number),
                 after);
    }
}

/* What is seen of the first device from outside stands in for an allocator's statistics. */
static gmd_stats stats_of(gmd_session *session, uint32_t device)
{
    gmd_sink_memory seen;
    if (session->figures.has_stats) {
        return session->figures.stats[device];
    }
    gmd_session_memory(session, &seen);
    return (gmd_stats){.allocated_bytes_peak = device ? GMD_STAT_UNKNOWN : seen.max_allocated,
                       .reserved_bytes_peak = device ? GMD_STAT_UNKNOWN : seen.max_reserved,
                       .num_alloc_retries = GMD_STAT_UNKNOWN};
}

static void note_peaks(gmd_session *session, uint32_t device_count)
{
    for (uint32_t i = 0; i < device_count && i < (uint32_t)session->device_count; i++) {
        const gmd_stats stats = stats_of(session, i);
        char text[160] = "";
        if (device_count > 1) {
            snprintf(text, sizeof text, "device %" PRIu32 ": ", i);
        }
        add_bytes(text, sizeof text, "peak ", stats.allocated_bytes_peak, " allocated");
        add_bytes(text, sizeof text, ", ", stats.reserved_bytes_peak, " reserved");
        add_figure(text, sizeof text, "; ", stats.num_alloc_retries, " retries");
        gmd_session_note(session, "%s", text);
    }
}

static void note_refusals(gmd_session *session, const refusals *r, uint64_t recorded)
{
    if (r->count || recorded) {
        gmd_session_note(session,
                         "out of memory: %" PRIu64 " time%s, %" PRIu64
                         " of them where the recorded allocator served the request",
                         r->count, r->count == 1 ? "" : "s", r->added);
    }
    if (r->left_out) {
        gmd_session_note(session,
                         "%" PRIu64 " of the requests that the recorded allocator refused are "
                         "served: what the job would have asked for then is not in the history",
                         r->left_out);
    }
}

static void judge_fit(gmd_session *session, const refusals *r)
{
    char text[200];
    snprintf(text, sizeof text,
             "the job runs out of memory: %" PRIu64 " requests that were served when it was "
             "recorded are refused, this one first",
             r->added);
    gmd_session_fail(session, GMD_KIND(expect, refused), GMD_NO_PARTIES, r->first, text);
}

gmd_status gmd_replay_history(void *context, gmd_session *session, gmd_error *error)
{
    (void)error;
    const gmd_history_replay *replay = context;
    refusals r = {0};
    if (play(session, replay->history, &r)) {
        gmd_session_phase(session, "end");
    }
    note_peaks(session, replay->history->trace.conditions.device_count);
    note_refusals(session, &r, replay->history->oom_count);
    if (r.added && replay->must_fit) {
        judge_fit(session, &r);
    }
    return GMD_OK;
}
