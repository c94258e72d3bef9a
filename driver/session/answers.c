#include "gmd_answers.h"

#include "gmd_hash.h"
#include "gmd_session_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIGURES ((sizeof(gmd_stats) - sizeof(size_t)) / sizeof(uint64_t))

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = gmd_hash_add(hash, value);
    return hash ^ hash >> 29;
}

static uint64_t hash_request(const gmd_request *r)
{
    uint64_t hash = mix(r->op, r->device);
    hash = mix(hash, r->block);
    hash = mix(hash, r->stream);
    return mix(hash, r->bytes);
}

static uint64_t hash_calls(const gmd_session *s)
{
    uint64_t hash = s->calls.count;
    for (size_t i = 0; i < s->calls.count; i++) {
        const gmd_device_call *c = &s->calls.list[i];
        hash = mix(hash, c->address);
        hash = mix(hash, c->size << 2 | (uint64_t)c->is_free << 1 | c->is_mapping);
    }
    return hash;
}

static bool has_unmapped(const gmd_session *s)
{
    for (size_t i = 0; i < s->calls.count; i++) {
        if (s->calls.list[i].is_free && s->calls.list[i].is_mapping) {
            return s->has_used;
        }
    }
    return false;
}

static run_answer answer_of(const gmd_session *s, const gmd_request *r, bool is_refused)
{
    run_answer a = {.request = hash_request(r),
                    .calls = hash_calls(s),
                    .is_refused = is_refused,
                    .has_unmapped = has_unmapped(s)};
    gmd_device_range range;
    a.address = r->op == GMD_OP_ALLOC ? live_blocks_address(&s->blocks, r->block) : 0;
    if (a.address && s->view.ask.find_range &&
        s->view.ask.find_range(s->view.ask.context, a.address, &range)) {
        a.offset = a.address - range.address;
        a.range_size = range.size;
    }
    memset(&a.stats, 0xff, sizeof a.stats);
    if (s->figures.has_stats) {
        a.stats = s->figures.stats[s->view.device];
    }
    return a;
}

static uint64_t figure(const gmd_stats *stats, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + sizeof(size_t) + i * sizeof value, sizeof value);
    return value;
}

static size_t first_figure_that_differs(const run_answer *a, const run_answer *b)
{
    size_t i = 0;
    while (i < FIGURES) {
        uint64_t x = figure(&a->stats, i), y = figure(&b->stats, i);
        if (x != y && x != GMD_STAT_UNKNOWN && y != GMD_STAT_UNKNOWN) {
            break;
        }
        i++;
    }
    return i;
}

static bool are_at_the_same_place(run_likeness likeness, const run_answer *a, const run_answer *b)
{
    return likeness == GMD_LIKE_ITSELF ? a->address == b->address && a->calls == b->calls
                                       : !a->address == !b->address && a->offset == b->offset &&
                                             a->range_size == b->range_size;
}

static bool are_alike(run_likeness likeness, const run_answer *a, const run_answer *b)
{
    return a->is_refused == b->is_refused && are_at_the_same_place(likeness, a, b) &&
           first_figure_that_differs(a, b) == FIGURES;
}

/* A request of 0 bytes is served without a block by PyTorch's raw_alloc(), and with one by its
 * malloc(): the reference allocator is the latter, and has one block more from there on. */
static bool is_of_nothing(const run_answer *a, const run_answer *b)
{
    return !a->is_refused && !b->is_refused && !a->address != !b->address;
}

/* Where pages are unmapped, PyTorch waits for a stream and the reference allocator for the device:
 * what of other streams' work is over differs from there on. */
static bool may_differ_by_itself(run_likeness likeness, const run_answer *a, const run_answer *b)
{
    return a->request != b->request ||
           (likeness == GMD_LIKE_PYTORCH &&
            (a->has_unmapped || b->has_unmapped || is_of_nothing(a, b)));
}

/* An answer that another process has left, of which no byte is believed to be a bool. */
static run_answer take_answer(const run_answer *from)
{
    run_answer answer = *from;
    bool *const flags[] = {&answer.is_refused, &answer.has_unmapped};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        unsigned char byte;
        memcpy(&byte, flags[i], sizeof byte);
        *flags[i] = byte != 0;
    }
    return answer;
}

bool answers_note(run_answers *answers, const struct gmd_session *session,
                  const gmd_request *request, bool is_refused)
{
    if (!answers->compares) {
        if (answers->count < GMD_ANSWER_MAX) {
            answers->list[answers->count++] = answer_of(session, request, is_refused);
        }
        return true;
    }
    if (answers->compared >= answers->count || answers->compared >= GMD_ANSWER_MAX ||
        answers->has_ended) {
        answers->has_ended = true;
        return false;
    }
    run_answer now = answer_of(session, request, is_refused);
    run_answer before = take_answer(&answers->list[answers->compared]);
    bool has_ended = may_differ_by_itself(answers->likeness, &before, &now);
    bool is_different = !has_ended && !are_alike(answers->likeness, &before, &now);
    if (is_different) {
        answers->first = before;
        answers->second = now;
        answers->is_different = true;
    }
    answers->has_ended = has_ended || is_different;
    answers->compared += !answers->has_ended;
    return !answers->has_ended;
}

void answers_begin_comparison(run_answers *answers, run_likeness likeness)
{
    answers->compares = true;
    answers->likeness = likeness;
    answers->compared = 0;
    answers->has_ended = answers->is_different = false;
}

answers_difference answers_take(const run_answers *answers, run_likeness likeness)
{
    return (answers_difference){.is_there = answers->is_different,
                                .compared = answers->compared,
                                .likeness = likeness,
                                .first = take_answer(&answers->first),
                                .second = take_answer(&answers->second)};
}

static void describe_place(run_likeness likeness, const run_answer *a, char *text, size_t size)
{
    if (a->is_refused || !a->address) {
        snprintf(text, size, "%s", a->is_refused ? "out of memory" : "no block");
    } else if (likeness == GMD_LIKE_ITSELF) {
        snprintf(text, size, "0x%" PRIx64, a->address);
    } else {
        snprintf(text, size, "byte %" PRIu64 " of a device allocation of %" PRIu64 " B", a->offset,
                 a->range_size);
    }
}

static const char *const figure_names[FIGURES] = {
    "allocated_bytes",  "allocated_bytes_peak", "reserved_bytes",       "reserved_bytes_peak",
    "active_bytes",     "active_bytes_peak",    "inactive_split_bytes", "requested_bytes",
    "allocation_count", "segment_count",        "num_alloc_retries",    "num_ooms"};

const char *gmd_answers_token(const answers_difference *d)
{
    const run_answer *a = &d->first, *b = &d->second;
    size_t i = first_figure_that_differs(a, b);
    return a->is_refused != b->is_refused              ? "refusal"
           : !are_at_the_same_place(d->likeness, a, b) ? "place"
                                                       : figure_names[i < FIGURES ? i : 0];
}

void answers_describe(const answers_difference *d, char *text, size_t size)
{
    const run_answer *a = &d->first, *b = &d->second;
    size_t i = first_figure_that_differs(a, b);
    char one[80], other[80];
    if (a->is_refused != b->is_refused || !are_at_the_same_place(d->likeness, a, b)) {
        describe_place(d->likeness, a, one, sizeof one);
        describe_place(d->likeness, b, other, sizeof other);
        if (strcmp(one, other) != 0) {
            snprintf(text, size, "%s, and %s", one, other);
        } else {
            snprintf(text, size, "%s, with other memory calls to the device in between", one);
        }
    } else {
        snprintf(text, size, "%s = %" PRIu64 ", and %" PRIu64, figure_names[i < FIGURES ? i : 0],
                 figure(&a->stats, i), figure(&b->stats, i));
    }
}
