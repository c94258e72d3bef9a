/* evidence.c - what several classes of finding share. */
#include "classes.h"

#include "gmd_min.h"

#include <stdarg.h>
#include <stdio.h>

bool group_grows(const class_view *view, const retained_group *group)
{
    enum { LEAST_RISES = 3, RISES_PERCENT = 70 };
    uint32_t compared = view->facts->iterations.count > 2 ? view->facts->iterations.count - 2 : 0;
    return group->growth > 0 && group->rises >= LEAST_RISES &&
           group->rises * 100 >= compared * RISES_PERCENT && group->falls * 20 <= compared;
}

void blame_line(gmd_job_finding *finding, uint32_t frame, uint64_t bytes, bool is_inferred)
{
    size_t at = 0;
    while (at < finding->where_count && finding->where[at].frame != frame) {
        at++;
    }
    if (at == GMD_FINDING_PLACES) {
        return;
    }
    if (at == finding->where_count) {
        finding->where[finding->where_count++] = (gmd_finding_place){frame, 0, is_inferred};
    }
    gmd_finding_place place = finding->where[at];
    place.bytes += bytes;
    for (; at > 0 && finding->where[at - 1].bytes < place.bytes; at--) {
        finding->where[at] = finding->where[at - 1];
    }
    finding->where[at] = place;
}

void blame_group(gmd_job_finding *finding, const class_view *view, const retained_group *group)
{
    (void)view;
    finding->bytes += group->most;
    finding->bytes_per_iteration += group->growth > 0 ? (uint64_t)group->growth : 0;
    blame_line(finding, group->frame, group->most, false);
}

uint32_t line_before(const gmd_facts *facts, uint32_t moment)
{
    const gmd_recording *r = &facts->recording;
    for (uint32_t at = moment; at > GMD_BEFORE; at--) {
        const gmd_snapshot_event *e = gmd_event_at(r, at);
        uint32_t frame =
            e->device == r->device ? gmd_places_frame(&facts->places, e->origin) : GMD_NO_PLACE;
        if (frame != GMD_NO_PLACE && !gmd_places_get(&facts->places, frame).is_library) {
            return frame;
        }
    }
    return GMD_NO_PLACE;
}

void say_evidence(gmd_job_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->evidence, sizeof finding->evidence, format, arguments);
    va_end(arguments);
}

void say_fix(gmd_job_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, arguments);
    va_end(arguments);
}

bool group_passes(const class_view *view, const retained_group *group, const char *file)
{
    const gmd_origins *origins = view->facts->places.origins;
    size_t count;
    const uint32_t *frames = gmd_origins_stack(origins, group->stack, &count);
    for (size_t i = 0; i < count; i++) {
        if (gmd_is_path_end(gmd_places_get(&view->facts->places, frames[i]).file, file)) {
            return true;
        }
    }
    return false;
}
