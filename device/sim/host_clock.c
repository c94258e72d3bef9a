#include "host_clock.h"

#include "streams.h"

bool host_is_after(point p)
{
    return !p.on || p.on->progress.known >= p.ticket;
}

static void learn(stream *s, uint64_t ticket)
{
    if (s->progress.known < ticket) {
        s->progress.known = ticket;
        if (ticket == s->tail) {
            stream_close(s);
        }
    }
}

void host_learn(point p)
{
    if (host_is_after(p)) {
        return;
    }
    gmd_past *before = gmd_past_keep(p.before); /* closing the stream gives its own up */
    for (uint32_t i = 0; before && i < before->count; i++) {
        learn(stream_of_progress(before->items[i].on), before->items[i].ticket);
    }
    gmd_past_drop(before);
    learn(p.on, p.ticket);
}

void host_learn_group(int device, stream_group group)
{
    /* Learning of one stream may close others, which moves streams of the list downwards only. */
    for (uint32_t i = streams.open_count; i-- > 0;) {
        i = i < streams.open_count ? i : streams.open_count;
        if (i < streams.open_count && stream_is_in(streams.open[i], device, group)) {
            host_learn(stream_point(streams.open[i]));
        }
    }
}
