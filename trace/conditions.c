#include "gmd_conditions.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

gmd_conditions gmd_conditions_in_force(const gmd_conditions *stated, const gmd_conditions *given)
{
    return (gmd_conditions){
        .device_count = stated->device_count ? stated->device_count : given->device_count,
        .capacity_bytes = stated->capacity_bytes ? stated->capacity_bytes : given->capacity_bytes,
        .limit_bytes = stated->limit_bytes ? stated->limit_bytes : given->limit_bytes,
        .conf = stated->conf ? stated->conf : given->conf,
        .placement =
            gmd_placement_is_stated(&stated->placement) ? stated->placement : given->placement,
        .reuses_handles = stated->reuses_handles || given->reuses_handles,
        .moves_clock = stated->moves_clock || given->moves_clock,
        .schedule = gmd_schedule_is_stated(&stated->schedule) ? stated->schedule : given->schedule,
        .interleave = given->interleave};
}

static bool schedules_equal(const gmd_schedule *a, const gmd_schedule *b)
{
    return a->kind == b->kind && a->seed == b->seed && a->choice_count == b->choice_count &&
           a->depth == b->depth && a->steps == b->steps &&
           (!a->choice_count || memcmp(a->choices, b->choices, a->choice_count) == 0);
}

bool gmd_conditions_same_device(const gmd_conditions *a, const gmd_conditions *b)
{
    return a->device_count == b->device_count && a->capacity_bytes == b->capacity_bytes &&
           a->limit_bytes == b->limit_bytes &&
           strcmp(a->conf ? a->conf : "", b->conf ? b->conf : "") == 0 &&
           gmd_placement_equal(&a->placement, &b->placement) &&
           a->reuses_handles == b->reuses_handles && a->moves_clock == b->moves_clock &&
           schedules_equal(&a->schedule, &b->schedule);
}

bool gmd_conditions_equal(const gmd_conditions *a, const gmd_conditions *b)
{
    return gmd_conditions_same_device(a, b) && schedules_equal(&a->interleave, &b->interleave);
}

gmd_status gmd_conditions_copy(gmd_conditions *to, const gmd_conditions *from, gmd_error *error)
{
    const gmd_conditions view = *from; /* which may be `to` */
    *to = (gmd_conditions){.device_count = view.device_count,
                           .capacity_bytes = view.capacity_bytes,
                           .limit_bytes = view.limit_bytes,
                           .placement = view.placement,
                           .reuses_handles = view.reuses_handles,
                           .moves_clock = view.moves_clock};
    gmd_status status = gmd_conditions_set_conf(to, view.conf, error);
    if (status == GMD_OK) {
        status = gmd_schedule_copy(&to->schedule, &view.schedule, error);
    }
    if (status == GMD_OK) {
        status = gmd_schedule_copy(&to->interleave, &view.interleave, error);
    }
    if (status != GMD_OK) {
        gmd_conditions_free(to);
    }
    return status;
}

static void free_conf(gmd_conditions *conditions)
{
    free((char *)(uintptr_t)conditions->conf); /* borrowed ones are only read */
    conditions->conf = NULL;
}

gmd_status gmd_conditions_set_conf(gmd_conditions *conditions, const char *conf, gmd_error *error)
{
    char *copy = conf ? gmd_text_copy(conf, strlen(conf)) : NULL;
    if (conf && !copy) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a trace's settings");
    }
    free_conf(conditions);
    conditions->conf = copy;
    return GMD_OK;
}

void gmd_conditions_free(gmd_conditions *conditions)
{
    free_conf(conditions);
    gmd_schedule_free(&conditions->schedule);
    gmd_schedule_free(&conditions->interleave);
    *conditions = (gmd_conditions){0};
}
