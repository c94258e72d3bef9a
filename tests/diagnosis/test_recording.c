/* Amounts and lifetimes of recorded histories; of those that are cut, in front or behind. */
#include "gmd_recording.h"
#include "planted.h"

#include <stdio.h>
#include <stdlib.h>

/* --- planted ------------------------------------------------------------------------------- */

static int open_planted(void **state)
{
    *state = planted_new();
    return 0;
}

static int close_planted(void **state)
{
    planted_free(*state);
    return 0;
}

FIXTURE(history, open_planted, close_planted);

static gmd_recording read_planted(planted *p)
{
    gmd_recording r;
    gmd_error error;
    assert_int_equal(gmd_recording_make(&r, planted_snapshot(p), 0, &error), GMD_OK);
    return r;
}

TEST_F(history, the_peak_is_the_most_that_was_there_at_once)
{
    planted *p = *state;
    size_t first = planted_alloc(p, 3 * GMD_MIB);
    planted_alloc(p, 4 * GMD_MIB);
    planted_free_block(p, first);
    planted_alloc(p, 1 * GMD_MIB);
    gmd_recording r = read_planted(p);
    assert_int_equal(r.peak.amount.allocated, 7 * GMD_MIB);
    assert_int_equal(r.at_end.allocated, 5 * GMD_MIB);
    gmd_recording_free(&r);
}

TEST_F(history, what_waits_for_a_stream_is_active_and_not_allocated)
{
    planted *p = *state;
    planted_request_free(p, planted_alloc(p, 3 * GMD_MIB));
    gmd_recording r = read_planted(p);
    assert_int_equal(r.at_end.allocated, 0);
    assert_int_equal(r.at_end.active, 3 * GMD_MIB);
    gmd_recording_free(&r);
}

TEST_F(history, a_refusal_after_which_nothing_is_asked_ended_the_job)
{
    planted *p = *state;
    planted_alloc(p, 3 * GMD_MIB);
    planted_refuse(p, 8 * GMD_MIB);
    planted_alloc(p, 512);
    gmd_recording r = read_planted(p);
    assert_int_equal(gmd_event_at(&r, r.ended_by_oom)->size, 8 * GMD_MIB);
    gmd_recording_free(&r);
}

TEST_F(history, a_refusal_after_which_as_much_is_served_did_not)
{
    planted *p = *state;
    planted_refuse(p, 8 * GMD_MIB);
    planted_alloc(p, 7 * GMD_MIB);
    gmd_recording r = read_planted(p);
    assert_int_equal(r.ended_by_oom, 0);
    gmd_recording_free(&r);
}

/* Two allocations at one address, the first of them still live. */
static gmd_recording read_address_given_twice(planted *p, gmd_snapshot *snapshot, bool is_run)
{
    gmd_recording r;
    gmd_error error;
    gmd_snapshot_event *first = NULL;
    planted_alloc(p, 3 * GMD_MIB);
    planted_alloc(p, 3 * GMD_MIB);
    *snapshot = planted_take_snapshot(p);
    for (size_t i = 0; i < snapshot->event_count; i++) {
        gmd_snapshot_event *e = &snapshot->events[i];
        if (e->action == GMD_ACTION_ALLOC) {
            first = first ? first : e;
            e->address = first->address;
        }
    }
    snapshot->is_run = is_run;
    assert_int_equal(gmd_recording_make(&r, snapshot, 0, &error), GMD_OK);
    return r;
}

TEST_F(history, of_a_run_an_address_that_is_given_twice_has_two_blocks)
{
    gmd_snapshot snapshot;
    gmd_recording r = read_address_given_twice(*state, &snapshot, true);
    assert_int_equal(r.contradictions, 0);
    assert_int_equal(r.lifetimes[0].address, r.lifetimes[1].address);
    gmd_recording_free(&r);
    gmd_snapshot_free(&snapshot);
}

TEST_F(history, of_a_recording_an_address_that_is_given_twice_is_a_contradiction)
{
    gmd_snapshot snapshot;
    gmd_recording r = read_address_given_twice(*state, &snapshot, false);
    assert_int_equal(r.contradictions, 1);
    gmd_recording_free(&r);
    gmd_snapshot_free(&snapshot);
}

TEST_F(history, a_block_in_the_place_of_one_that_was_freed_is_of_after_the_recording)
{
    planted *p = *state;
    planted_free_block(p, planted_alloc(p, 3 * GMD_MIB));
    planted_end_early(p);
    planted_alloc(p, 3 * GMD_MIB);
    gmd_recording r = read_planted(p);
    assert_true(r.ends_early);
    assert_int_equal(r.at_end.allocated, 0);
    gmd_recording_free(&r);
}

/* --- recorded, and cut --------------------------------------------------------------------- */

static const char *const names[] = {"resnet50_leak", "simple_cycle_leak", "hidden_leak", "seq2seq",
                                    "lstm_expand",   "two_devices",       "cross_stream"};

enum { CUTS = 10, DEVICE = 0 };

typedef struct history {
    gmd_snapshot snapshot;
    gmd_amount *after; /* by moment, of the device; the one before where the event is another's */
} history;

static void note(void *context, uint32_t moment, const gmd_amount *amount)
{
    ((gmd_amount *)context)[moment] = *amount;
}

static history read_history(const char *name)
{
    history h;
    gmd_error error;
    gmd_recording whole;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.pickle.gz", GMD_HISTORIES, name);
    assert_int_equal(gmd_snapshot_read(&h.snapshot, path, &error), GMD_OK);
    assert_int_equal(gmd_recording_make(&whole, &h.snapshot, DEVICE, &error), GMD_OK);
    h.after = calloc(h.snapshot.event_count + 1, sizeof *h.after);
    assert_non_null(h.after);
    gmd_recording_walk(&whole, note, h.after);
    gmd_recording_free(&whole);
    return h;
}

static void free_history(history *h)
{
    gmd_snapshot_free(&h->snapshot);
    free(h->after);
}

static uint64_t true_peak(const history *h, size_t from, size_t end)
{
    uint64_t peak = 0;
    for (size_t i = from; i < end; i++) {
        uint64_t allocated = h->after[i + 1].allocated;
        peak = allocated > peak ? allocated : peak;
    }
    return peak;
}

static gmd_recording cut(const history *h, size_t from, size_t end)
{
    static gmd_snapshot part; /* the recording refers to it */
    gmd_recording r;
    gmd_error error;
    part = h->snapshot;
    part.events += from;
    part.event_count = end - from;
    assert_int_equal(gmd_recording_make(&r, &part, DEVICE, &error), GMD_OK);
    return r;
}

TEST(a_history_that_lacks_its_beginning_is_marked_or_has_its_peak)
{
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        history h = read_history(names[n]);
        size_t count = h.snapshot.event_count;
        uint64_t whole = true_peak(&h, 0, count);
        for (size_t i = 1; i <= CUTS; i++) {
            gmd_recording r = cut(&h, count * i / (CUTS + 1), count);
            assert_true(r.begins_late || r.peak.amount.allocated >= whole);
            gmd_recording_free(&r);
        }
        free_history(&h);
    }
}

TEST(of_what_is_left_of_it_the_peak_is_right)
{
    enum {
        WITHIN_PERCENT = 2
    }; /* of a block that was there before, and goes, only the request is
          known, and not what it kept of a free range beyond that */
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        history h = read_history(names[n]);
        size_t count = h.snapshot.event_count;
        for (size_t i = 1; i <= CUTS; i++) {
            size_t from = count * i / (CUTS + 1);
            gmd_recording r = cut(&h, from, count);
            uint64_t peak = true_peak(&h, from, count), found = r.peak.amount.allocated;
            assert_true(found * 100 >= peak * (100 - WITHIN_PERCENT));
            assert_true(found * 100 <= peak * (100 + WITHIN_PERCENT) || r.begins_late);
            gmd_recording_free(&r);
        }
        free_history(&h);
    }
}

TEST(what_is_there_at_its_end_is_what_is_there_at_the_wholes)
{
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        history h = read_history(names[n]);
        size_t count = h.snapshot.event_count;
        gmd_recording whole = cut(&h, 0, count);
        for (size_t i = 1; i <= CUTS; i++) {
            gmd_recording r = cut(&h, count * i / (CUTS + 1), count);
            assert_int_equal(r.at_end.allocated, whole.at_end.allocated);
            gmd_recording_free(&r);
        }
        gmd_recording_free(&whole);
        free_history(&h);
    }
}

TEST(a_history_that_lacks_its_end_has_the_peak_up_to_there_and_is_marked)
{
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        history h = read_history(names[n]);
        size_t count = h.snapshot.event_count;
        uint64_t whole = true_peak(&h, 0, count);
        for (size_t i = 1; i <= CUTS; i++) {
            size_t end = count * i / (CUTS + 1);
            gmd_recording r = cut(&h, 0, end);
            uint64_t peak = true_peak(&h, 0, end);
            assert_true(r.ends_early || r.begins_late || r.peak.amount.allocated >= whole);
            assert_true(r.peak.amount.allocated >= peak);
            gmd_recording_free(&r);
        }
        free_history(&h);
    }
}
