#include "course.h"

#include "size_set.h"

#include "gmd_min.h"
#include "gmd_size.h"

enum { QUARTERS = 4, PARTS = 16 }; /* of all events */

typedef struct walk {
    course found;
    const gmd_recording *r;
    gmd_amount before;        /* after the event before */
    uint64_t most_active;     /* so far */
    uint64_t most_reserved;   /* likewise */
    uint64_t taken;           /* beyond what ever was reserved; to be judged by the request that it
                                 was for, which comes next */
    uint64_t late, late_from; /* taken late, on whatever occasion; the first event of it */
    uint64_t least;           /* that was reserved in the second half */
    uint64_t events;
    uint32_t warmed_up; /* moment */
    uint32_t half;      /* moment when the second half begins: of iterations, if that is later */
    size_set sizes;
    uint64_t asked[PARTS], asked_new[PARTS]; /* bytes; the latter of sizes that no part before asked
                                                for */
    bool is_out_of_memory;
} walk;

/* What was just freed is active still, for an event; a request finds what really waits. */
static void note_pending(walk *w, uint32_t moment, const gmd_amount *amount)
{
    uint64_t pending = amount->active - amount->allocated;
    if (gmd_event_at(w->r, moment)->action == GMD_ACTION_ALLOC && pending > w->found.pending) {
        w->found.pending = pending;
        w->found.pending_at = moment;
    }
}

/* Whether an event asks for a size that was asked for lately for the first time: a batch of a new
 * shape has many blocks of each size. Small blocks share segments of one size: they always find a
 * place. */
static bool asks_for_new_size(walk *w, uint32_t moment)
{
    const gmd_snapshot_event *e = gmd_event_at(w->r, moment);
    uint64_t first, all = w->r->event_count, part = w->events * PARTS / all;
    if (e->action != GMD_ACTION_ALLOC || e->size <= GMD_MIB || w->is_out_of_memory) {
        return false;
    }
    w->is_out_of_memory = !size_set_add(&w->sizes, e->size, w->events, &first);
    if (w->is_out_of_memory) {
        return false;
    }
    w->found.asked += e->size;
    w->asked[part] += e->size;
    w->asked_new[part] += first * PARTS / all == part ? e->size : 0;
    return (w->events - first) * PARTS <= all;
}

/* What is taken once, for a part of the program that comes later than others, is none of it. */
static void note_taken_late(walk *w)
{
    bool is_again = w->late_from && (w->events - w->late_from) * PARTS > w->r->event_count;
    w->late_from = w->late_from ? w->late_from : w->events;
    w->late += w->taken;
    w->found.taken_late = is_again || w->found.taken_late ? w->late : 0;
}

static void note_taken(walk *w, uint32_t moment, const gmd_amount *amount)
{
    bool is_new = asks_for_new_size(w, moment);
    if (w->taken && amount->active > w->before.active) {
        if (is_new && amount->active <= w->most_active) {
            note_taken_late(w);
        }
        w->taken = 0;
    }
    if (amount->reserved > w->most_reserved) {
        bool is_late = w->events * QUARTERS >= w->r->event_count && moment >= w->warmed_up;
        w->taken += is_late ? amount->reserved - w->most_reserved : 0;
        w->most_reserved = amount->reserved;
    }
    w->most_active = gmd_max(w->most_active, amount->active);
}

static void note(void *context, uint32_t moment, const gmd_amount *amount)
{
    walk *w = context;
    note_pending(w, moment, amount);
    note_taken(w, moment, amount);
    if (w->events * 2 >= w->r->event_count && moment >= w->half) {
        w->found.needed = gmd_max(w->found.needed, amount->active);
        w->found.needed_always = gmd_min(w->found.needed_always, amount->active);
        w->found.asked_then +=
            amount->allocated > w->before.allocated ? amount->allocated - w->before.allocated : 0;
        w->least = gmd_min(w->least, amount->reserved);
    }
    if (w->events * QUARTERS >= w->r->event_count * (QUARTERS - 1)) {
        w->found.reserved = gmd_max(w->found.reserved, amount->reserved);
    }
    w->before = *amount;
    w->events++;
}

static bool is_ever_new(const walk *w)
{
    enum { LEAST_PERCENT = 10, PARTS_PERCENT = 60, FIRST = PARTS / QUARTERS };
    int with_new = 0;
    for (int i = FIRST; i < PARTS; i++) {
        with_new += w->asked_new[i] > 0 && w->asked_new[i] * 100 >= w->asked[i] * LEAST_PERCENT;
    }
    return with_new * 100 >= (PARTS - FIRST) * PARTS_PERCENT;
}

gmd_status course_find(course *found, const gmd_recording *r, const gmd_iterations *iterations,
                       gmd_error *error)
{
    enum { WARM_UP = 2 };
    walk w = {.r = r,
              .before = r->at_start,
              .most_active = r->at_start.active,
              .most_reserved = r->at_start.reserved,
              .least = r->peak.amount.reserved,
              .found.needed_always = r->peak.amount.active,
              .half = iterations->count ? iterations->starts[iterations->count / 2] : 0,
              .warmed_up = iterations->count > WARM_UP ? iterations->starts[WARM_UP] : 0};
    gmd_recording_walk(r, note, &w);
    size_set_free(&w.sizes);
    w.found.idle = w.events && w.least > w.found.needed ? w.least - w.found.needed : 0;
    w.found.is_ever_new = is_ever_new(&w);
    *found = w.found;
    return w.is_out_of_memory ? gmd_fail(error, GMD_NO_MEMORY, "no host memory for sizes asked for")
                              : GMD_OK;
}
