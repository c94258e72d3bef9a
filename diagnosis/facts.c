/* facts.c - all that is read out of a recording before anything is found wrong in it. */
#include "gmd_facts.h"

/* Without a frame in any request, what has none is not of the thread of backward(), but of anybody.
 */
static void know_frames(gmd_facts *facts)
{
    const gmd_snapshot *s = facts->snapshot;
    for (size_t i = 0; i < s->event_count; i++) {
        if (s->events[i].action == GMD_ACTION_ALLOC &&
            gmd_origins_get(&s->origins, s->events[i].origin).stack) {
            return;
        }
    }
    if (s->event_count) {
        gmd_places_forget_frames(&facts->places);
    }
}

gmd_status gmd_facts_make(gmd_facts *facts, const gmd_snapshot *snapshot, uint8_t device,
                          gmd_error *error)
{
    *facts = (gmd_facts){.snapshot = snapshot};
    gmd_status status = gmd_places_make(&facts->places, &snapshot->origins, error);
    if (status == GMD_OK) {
        status = gmd_recording_make(&facts->recording, snapshot, device, error);
    }
    if (status == GMD_OK) {
        know_frames(facts);
    }
    if (snapshot->recorder != GMD_RECORDER_PYTORCH) {
        facts->recording.ends_early = false; /* there are no segments that could be of later */
    }
    if (status == GMD_OK) {
        status = gmd_iterations_find(&facts->iterations, &facts->recording, &facts->places, error);
    }
    if (status == GMD_OK) {
        status = gmd_categories_infer(&facts->categories, &facts->recording, &facts->places,
                                      &facts->iterations, error);
    }
    if (status != GMD_OK) {
        gmd_facts_free(facts);
    }
    return status;
}

void gmd_facts_free(gmd_facts *facts)
{
    gmd_categories_free(&facts->categories);
    gmd_iterations_free(&facts->iterations);
    gmd_recording_free(&facts->recording);
    gmd_places_free(&facts->places);
}
