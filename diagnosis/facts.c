/* facts.c - all that is read out of a recording before anything is found wrong in it. */
#include "gmd_facts.h"

gmd_status gmd_facts_make(gmd_facts *facts, const gmd_snapshot *snapshot, uint8_t device,
                          gmd_error *error)
{
    *facts = (gmd_facts){.snapshot = snapshot};
    gmd_status status = gmd_places_make(&facts->places, &snapshot->origins, error);
    if (status == GMD_OK) {
        status = gmd_recording_make(&facts->recording, snapshot, device, error);
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
