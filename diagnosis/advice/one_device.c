#include "one_device.h"

#include <stdlib.h>

static void keep_events(gmd_snapshot *view, const gmd_snapshot *s, uint8_t device)
{
    for (size_t i = 0; i < s->event_count; i++) {
        if (s->events[i].device == device) {
            view->events[view->event_count] = s->events[i];
            view->events[view->event_count++].device = 0;
        }
    }
}

static void keep_segments(gmd_snapshot *view, const gmd_snapshot *s, uint8_t device)
{
    for (size_t i = 0; i < s->segment_count; i++) {
        if (s->segments[i].device == device) {
            view->segments[view->segment_count] = s->segments[i];
            view->segments[view->segment_count++].device = 0;
        }
    }
}

static void keep_annotations(gmd_snapshot *view, const gmd_snapshot *s, uint8_t device)
{
    for (size_t i = 0; i < s->annotation_count; i++) {
        if (s->annotations[i].device == device) {
            view->annotations[view->annotation_count] = s->annotations[i];
            view->annotations[view->annotation_count++].device = 0;
        }
    }
}

gmd_status one_device_make(gmd_snapshot *view, const gmd_snapshot *s, uint8_t device,
                           const char *name, gmd_error *error)
{
    *view = *s;
    view->events = malloc((s->event_count + 1) * sizeof *view->events);
    view->segments = malloc((s->segment_count + 1) * sizeof *view->segments);
    view->annotations = malloc((s->annotation_count + 1) * sizeof *view->annotations);
    view->event_count = view->segment_count = view->annotation_count = 0;
    view->device_count = 1;
    if (!view->events || !view->segments || !view->annotations) {
        one_device_free(view);
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    }
    keep_events(view, s, device);
    keep_segments(view, s, device);
    keep_annotations(view, s, device);
    return GMD_OK;
}

void one_device_free(gmd_snapshot *view)
{
    free(view->events);
    free(view->segments);
    free(view->annotations);
    *view = (gmd_snapshot){0};
}
