#include "course.h"

#include "gmd_min.h"

typedef struct walk {
    course found;
    const gmd_recording *r;
    gmd_amount before;      /* after the event before */
    uint64_t most_active;   /* so far */
    uint64_t most_reserved; /* likewise */
    uint64_t taken;         /* beyond what ever was reserved; to be judged by the request that it
                               was for, which comes next */
    uint64_t least;         /* that was reserved in the second half */
    uint64_t events;
    uint32_t warmed_up; /* moment */
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

static void note_taken(walk *w, uint32_t moment, const gmd_amount *amount)
{
    if (w->taken && amount->active > w->before.active) {
        w->found.taken_late += amount->active <= w->most_active ? w->taken : 0;
        w->taken = 0;
    }
    if (amount->reserved > w->most_reserved) {
        bool is_late = w->events * 4 >= w->r->event_count && moment >= w->warmed_up;
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
    if (w->events * 2 >= w->r->event_count) {
        w->found.needed = gmd_max(w->found.needed, amount->active);
        w->least = gmd_min(w->least, amount->reserved);
    }
    w->before = *amount;
    w->events++;
}

course course_of(const gmd_recording *r, const gmd_iterations *iterations)
{
    enum { WARM_UP = 2 };
    walk w = {.r = r,
              .before = r->at_start,
              .most_active = r->at_start.active,
              .most_reserved = r->at_start.reserved,
              .least = r->peak.amount.reserved,
              .warmed_up = iterations->count > WARM_UP ? iterations->starts[WARM_UP] : 0};
    gmd_recording_walk(r, note, &w);
    w.found.idle = w.events && w.least > w.found.needed ? w.least - w.found.needed : 0;
    return w.found;
}
