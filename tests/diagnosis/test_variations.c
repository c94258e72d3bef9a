/* Recorded histories, each told in another way that changes nothing: or with less to see, which may
 * make a verdict weaker but accuses nobody. */
#include "gmd_facts.h"
#include "gmd_holders.h"
#include "gmd_job_findings.h"
#include "gmd_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GMD_TEST_CUTS
#define GMD_TEST_CUTS 10
#endif

enum { CUTS = GMD_TEST_CUTS, MOST_DEVICES = 8 };

/* --- verdicts -------------------------------------------------------------------------------- */

typedef struct verdict {
    gmd_facts facts;
    gmd_ooms ooms;
    gmd_job_findings findings;
} verdict;

static verdict judge(const gmd_snapshot *snapshot, uint8_t device)
{
    verdict v;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&v.facts, snapshot, device, &error), GMD_OK);
    assert_int_equal(gmd_ooms_find(&v.ooms, &v.facts, &error), GMD_OK);
    assert_int_equal(gmd_job_findings_find(&v.findings, &v.ooms, &v.facts, &error), GMD_OK);
    return v;
}

static void free_verdict(verdict *v)
{
    gmd_job_findings_free(&v->findings);
    gmd_ooms_free(&v->ooms);
    gmd_facts_free(&v->facts);
}

static const char *class_of(const verdict *v)
{
    return v->findings.count ? gmd_finding_class_name(v->findings.items[0].class) : "healthy";
}

static void assert_not_accused(const char *name, const char *how, const gmd_snapshot *snapshot,
                               uint8_t device)
{
    verdict v = judge(snapshot, device);
    if (v.findings.count) {
        fail_msg("%s, device %u, %s: %s, %s", name, device, how, class_of(&v),
                 v.findings.items[0].evidence);
    }
    free_verdict(&v);
}

static void assert_same(const char *name, const verdict *a, const verdict *b)
{
    if (a->findings.count != b->findings.count || strcmp(class_of(a), class_of(b)) != 0) {
        fail_msg("%s: %s, not %s", name, class_of(b), class_of(a));
    }
    for (size_t i = 0; i < a->findings.count; i++) {
        const gmd_job_finding *x = &a->findings.items[i], *y = &b->findings.items[i];
        assert_string_equal(x->evidence, y->evidence);
        assert_int_equal(x->where_count, y->where_count);
        assert_memory_equal(x->where, y->where, x->where_count * sizeof *x->where);
    }
    assert_memory_equal(&a->facts.recording.peak, &b->facts.recording.peak, sizeof(gmd_peak));
}

/* --- files ----------------------------------------------------------------------------------- */

/* A recorded history, which all tests look at: it is read and judged once. */
typedef struct history {
    char name[128];
    gmd_snapshot snapshot;
    bool is_recording;                                       /* it has a label */
    bool has_device[MOST_DEVICES], is_healthy[MOST_DEVICES]; /* as it was recorded */
} history;

static history *histories;
static size_t history_count;

/* Whether the label of a recording says that its class may be disputed. Histories without a label
 * are what they are. */
static bool is_contested(const char *folder, const char *name)
{
    char path[1024], line[1024];
    bool found = false;
    snprintf(path, sizeof path, "%s/%.*s.json", folder, (int)strcspn(name, "."), name);
    FILE *label = fopen(path, "r");
    while (label && !found && fgets(line, sizeof line, label)) {
        found = strstr(line, "\"contested\": \"") != NULL;
    }
    if (label) {
        fclose(label);
    }
    return found;
}

/* Devices that it has events of, and which of them nothing is found on. */
static void judge_devices(history *h)
{
    for (size_t i = 0; i < h->snapshot.event_count; i++) {
        uint8_t device = h->snapshot.events[i].device;
        assert_in_range(device, 0, MOST_DEVICES - 1);
        h->has_device[device] = true;
    }
    for (int device = 0; device < MOST_DEVICES; device++) {
        if (h->has_device[device]) {
            verdict v = judge(&h->snapshot, (uint8_t)device);
            h->is_healthy[device] = v.findings.count == 0;
            free_verdict(&v);
        }
    }
}

static void read_history(const char *folder, const char *name, bool is_recording)
{
    gmd_error error;
    char path[1024];
    histories = realloc(histories, (history_count + 1) * sizeof *histories);
    assert_non_null(histories);
    history *h = &histories[history_count++];
    *h = (history){.is_recording = is_recording};
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(gmd_snapshot_read(&h->snapshot, path, &error), GMD_OK);
    judge_devices(h);
}

static void read_folder(const char *path, bool is_recording)
{
    static const char ending[] = ".pickle.gz";
    DIR *folder = opendir(path);
    size_t before = history_count;
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const char *end = strstr(entry->d_name, ending);
        if (end && end[sizeof ending - 1] == '\0' && !is_contested(path, entry->d_name)) {
            read_history(path, entry->d_name, is_recording);
        }
    }
    closedir(folder);
    assert_true(history_count > before);
}

static int read_all(void **state)
{
    (void)state;
    read_folder(GMD_HISTORIES, false);
    read_folder(GMD_RECORDINGS, true);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < history_count; i++) {
        gmd_snapshot_free(&histories[i].snapshot);
    }
    free(histories);
    return 0;
}

TEST_GROUP(read_all, free_all);

/* What is done with a history, as far as a device of it goes. */
typedef void look_at(const history *h, uint8_t device);

static void look_at_recordings(look_at *look, bool and_histories)
{
    for (size_t i = 0; i < history_count; i++) {
        for (int device = 0; device < MOST_DEVICES; device++) {
            const history *h = &histories[i];
            if (h->has_device[device] && (h->is_recording || and_histories)) {
                look(h, (uint8_t)device);
            }
        }
    }
}

static void look_at_all(look_at *look)
{
    look_at_recordings(look, true);
}

/* --- copies ---------------------------------------------------------------------------------- */

static void *copy_items(const void *items, size_t size)
{
    void *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, items ? items : "", size);
    return copy;
}

/* Its events, segments, blocks and annotations are its own; all else is the original's. */
static gmd_snapshot copy_of(const gmd_snapshot *s)
{
    gmd_snapshot copy = *s;
    copy.events = copy_items(s->events, s->event_count * sizeof *s->events);
    copy.segments = copy_items(s->segments, s->segment_count * sizeof *s->segments);
    copy.blocks = copy_items(s->blocks, s->block_count * sizeof *s->blocks);
    copy.annotations = copy_items(s->annotations, s->annotation_count * sizeof *s->annotations);
    return copy;
}

static void free_copy(gmd_snapshot *copy)
{
    free(copy->events);
    free(copy->segments);
    free(copy->blocks);
    free(copy->annotations);
}

/* --- the same, told in another way ----------------------------------------------------------- */

static void move_addresses(gmd_snapshot *s, uint64_t by)
{
    for (size_t i = 0; i < s->event_count; i++) {
        s->events[i].address += s->events[i].action == GMD_ACTION_OOM ? 0 : by;
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        s->segments[i].address += by;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        s->blocks[i].address += by;
    }
}

static void look_at_other_addresses(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    gmd_snapshot moved = copy_of(s);
    move_addresses(&moved, (uint64_t)1 << 40);
    verdict a = judge(s, device), b = judge(&moved, device);
    assert_same(h->name, &a, &b);
    free_verdict(&a);
    free_verdict(&b);
    free_copy(&moved);
}

TEST(where_the_addresses_are_does_not_matter)
{
    look_at_all(look_at_other_addresses);
}

static void look_at_other_device(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    const uint8_t other = 31;
    gmd_snapshot moved = copy_of(s);
    for (size_t i = 0; i < s->event_count; i++) {
        moved.events[i].device = s->events[i].device == device ? other : s->events[i].device;
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        moved.segments[i].device = s->segments[i].device == device ? other : s->segments[i].device;
    }
    verdict a = judge(s, device), b = judge(&moved, other);
    assert_same(h->name, &a, &b);
    free_verdict(&a);
    free_verdict(&b);
    free_copy(&moved);
}

TEST(the_number_of_a_device_does_not_matter)
{
    look_at_all(look_at_other_device);
}

/* --- less to see ----------------------------------------------------------------------------- */

/* As recorded with context=None: annotations are all that has a text. */
static gmd_origins take_frames(gmd_snapshot *s)
{
    gmd_origins texts = {0};
    for (size_t i = 0; i < s->event_count; i++) {
        s->events[i].origin = 0;
    }
    for (size_t i = 0; i < s->segment_count; i++) {
        s->segments[i].origin = 0;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        s->blocks[i].origin = 0;
    }
    for (size_t i = 0; i < s->annotation_count; i++) {
        const char *text = gmd_origins_text(&s->origins, s->annotations[i].name, NULL);
        assert_true(gmd_origins_add_text(&texts, text, strlen(text), &s->annotations[i].name));
    }
    return texts;
}

static void look_without_frames(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    if (!h->is_healthy[device]) {
        return;
    }
    gmd_snapshot bare = copy_of(s);
    bare.origins = take_frames(&bare);
    assert_not_accused(h->name, "without frames", &bare, device);
    gmd_origins_free(&bare.origins);
    free_copy(&bare);
}

TEST(without_frames_nobody_is_accused_who_is_healthy_with_them)
{
    look_at_all(look_without_frames);
}

/* As the list of segments that torch 2.0 wrote. */
static void look_at_segments_only(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    gmd_snapshot bare = *s;
    bare.events = NULL;
    bare.annotations = NULL;
    bare.event_count = bare.annotation_count = 0;
    bare.has_events = false;
    verdict whole = judge(s, device), end = judge(&bare, device);
    if (whole.findings.count == 0 && end.findings.count) {
        fail_msg("%s, segments only: %s", h->name, class_of(&end));
    }
    if (!whole.facts.recording.ends_early) {
        assert_int_equal(end.facts.recording.peak.amount.allocated,
                         whole.facts.recording.at_end.allocated);
    }
    free_verdict(&whole);
    free_verdict(&end);
}

TEST(a_list_of_segments_has_what_is_there_at_the_end_and_accuses_nobody)
{
    look_at_all(look_at_segments_only);
}

/* --- histories that are cut ------------------------------------------------------------------ */

static gmd_snapshot cut(const gmd_snapshot *s, size_t from, size_t end)
{
    gmd_snapshot part = *s;
    part.events += from;
    part.event_count = end - from;
    return part;
}

/* Parts that were looked at, and those that were accused. */
static size_t parts, accused_parts;

static void count_part(const char *name, const char *which, bool is_accused, const verdict *v)
{
    parts++;
    if (is_accused) {
        accused_parts++;
        print_message("%s, %s: %s, %s\n", name, which, class_of(v), v->findings.items[0].evidence);
    }
}

/* What fills up for the rest of a recording and never goes within it cannot be told from a leak:
 * three parts in a thousand may be accused (docs/results/diagnosis.md). */
static void expect_few_accused(look_at *look)
{
    parts = accused_parts = 0;
    look_at_recordings(look, false);
    print_message("%zu of %zu parts accused\n", accused_parts, parts);
    assert_true(1000 * accused_parts <= 3 * parts);
}

static void look_at_late_parts(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    for (size_t i = 1; i <= CUTS && h->is_healthy[device]; i++) {
        size_t from = s->event_count * i / (CUTS + 1);
        char which[64];
        gmd_snapshot part = cut(s, from, s->event_count);
        verdict v = judge(&part, device);
        snprintf(which, sizeof which, "without the first %zu events", from);
        count_part(h->name, which, v.findings.count > 0, &v);
        free_verdict(&v);
    }
}

TEST(a_healthy_job_that_is_recorded_from_late_on_is_not_accused)
{
    expect_few_accused(look_at_late_parts);
}

/* What fills up looks like what leaks, until it is full. */
static bool may_be_filling(const verdict *v)
{
    gmd_finding_class class = v->findings.count ? v->findings.items[0].class : 0;
    return v->findings.count == 0 || class == GMD_FINDING_RETAINED_GRAPH ||
           class == GMD_FINDING_REFERENCE_CYCLE || class == GMD_FINDING_GRADIENT_ACCUMULATION ||
           class == GMD_FINDING_EVAL_GRAPH;
}

static void look_at_early_parts(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    for (size_t i = 1; i <= CUTS && h->is_healthy[device]; i++) {
        size_t end = s->event_count * i / (CUTS + 1);
        char which[64];
        gmd_snapshot part = cut(s, 0, end);
        verdict v = judge(&part, device);
        snprintf(which, sizeof which, "the first %zu events", end);
        count_part(h->name, which, !may_be_filling(&v), &v);
        free_verdict(&v);
    }
}

TEST(a_healthy_job_whose_end_is_missing_is_accused_of_no_more_than_what_it_fills)
{
    expect_few_accused(look_at_early_parts);
}

typedef struct amounts { /* allocated bytes after each event of the snapshot */
    uint64_t *after;
} amounts;

static void note_allocated(void *context, uint32_t moment, const gmd_amount *amount)
{
    ((amounts *)context)->after[moment] = amount->allocated;
}

static uint64_t most_allocated(const amounts *whole, size_t from, size_t end)
{
    uint64_t most = 0;
    for (size_t i = from; i < end; i++) {
        most = whole->after[i + 1] > most ? whole->after[i + 1] : most;
    }
    return most;
}

static gmd_holders hold(const gmd_facts *f, uint32_t moment)
{
    gmd_holders holders;
    gmd_error error;
    const gmd_holder_facts of = {&f->recording, &f->places, &f->iterations, &f->categories};
    assert_int_equal(gmd_holders_find(&holders, &of, GMD_BY_LINE, moment, &error), GMD_OK);
    return holders;
}

static uint64_t bytes_of(const gmd_holders *holders, uint64_t key)
{
    for (size_t i = 0; i < holders->count; i++) {
        if (holders->items[i].key == key) {
            return holders->items[i].bytes;
        }
    }
    return 0;
}

/* Each line holds at most what it holds in the whole; what is missing, no line is known of. */
static void assert_holders(const char *name, const gmd_facts *whole, const gmd_facts *part,
                           size_t from)
{
    enum { WITHIN_PERCENT = 3 };
    uint32_t moment = part->recording.peak.allocated_at;
    gmd_holders all = hold(whole, moment + (uint32_t)from), seen = hold(part, moment);
    for (size_t i = 0; i < seen.count; i++) {
        uint64_t key = seen.items[i].key, bytes = seen.items[i].bytes;
        bool is_known = key != GMD_NO_PLACE;
        if (is_known && bytes * 100 > bytes_of(&all, key) * (100 + WITHIN_PERCENT)) {
            fail_msg("%s from event %zu: a line holds %llu bytes, in the whole %llu", name, from,
                     (unsigned long long)bytes, (unsigned long long)bytes_of(&all, key));
        }
    }
    assert_true(seen.bytes == part->recording.peak.amount.allocated);
    gmd_holders_free(&all);
    gmd_holders_free(&seen);
}

static void assert_peak(const char *name, const gmd_snapshot *s, const gmd_facts *whole,
                        const amounts *truth, size_t from, size_t end)
{
    enum { WITHIN_PERCENT = 3 }; /* of a block from before only the request is known */
    gmd_snapshot part = cut(s, from, end);
    gmd_facts f;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&f, &part, whole->recording.device, &error), GMD_OK);
    const gmd_recording *r = &f.recording;
    uint64_t found = r->peak.amount.allocated, peak = most_allocated(truth, from, end);
    bool is_marked = r->begins_late || r->ends_early;
    if (found * 100 < peak * (100 - WITHIN_PERCENT) && !r->ends_early) {
        fail_msg("%s, events %zu to %zu: %llu allocated at the peak, and there were %llu", name,
                 from, end, (unsigned long long)found, (unsigned long long)peak);
    }
    /* What is there after its last event may be what is there at the end, as nothing was missing.
     */
    bool may_be_whole = truth->after[end] == truth->after[s->event_count];
    if (!is_marked && !may_be_whole && found < whole->recording.peak.amount.allocated) {
        fail_msg("%s, events %zu to %zu: not marked, and the peak is another's", name, from, end);
    }
    bool has_later_blocks = end < s->event_count && r->begins_late; /* nothing contradicts them */
    if (r->peak.allocated_at != GMD_BEFORE && !has_later_blocks) {
        assert_holders(name, whole, &f, from);
    }
    gmd_facts_free(&f);
}

static void look_at_figures(const history *h, uint8_t device)
{
    const gmd_snapshot *s = &h->snapshot;
    gmd_facts whole;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&whole, s, device, &error), GMD_OK);
    amounts truth = {calloc(s->event_count + 1, sizeof *truth.after)};
    assert_non_null(truth.after);
    gmd_recording_walk(&whole.recording, note_allocated, &truth);
    for (size_t i = 1; i <= CUTS; i++) {
        size_t at = s->event_count * i / (CUTS + 1);
        assert_peak(h->name, s, &whole, &truth, at, s->event_count);
        assert_peak(h->name, s, &whole, &truth, 0, at);
    }
    free(truth.after);
    gmd_facts_free(&whole);
}

TEST(a_part_of_a_history_has_its_peak_and_holders_or_says_that_it_is_a_lower_bound)
{
    look_at_all(look_at_figures);
}
