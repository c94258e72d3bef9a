#include "course.h"

#define FIRST_STEP 0.1

static void halve(cli_course *course)
{
    size_t kept = 0;
    for (size_t i = 0; i < course->count; i += 2) {
        course->moments[kept++] = course->moments[i];
    }
    course->count = kept;
    course->step *= 2;
}

static void add(cli_course *course, const gmd_search_status *s)
{
    if (course->count == CLI_COURSE_MAX) {
        halve(course);
    }
    course->moments[course->count++] = (gmd_campaign_moment){.seconds = s->seconds,
                                                             .runs = s->runs,
                                                             .requests = s->requests,
                                                             .findings = s->findings,
                                                             .features = s->features,
                                                             .inputs = s->inputs};
}

void cli_course_note(cli_course *course, const gmd_search_status *status)
{
    if (course->count && status->seconds < course->next) {
        return;
    }
    course->step = course->step > 0 ? course->step : FIRST_STEP;
    add(course, status);
    course->next = status->seconds + course->step;
}

void cli_course_end(cli_course *course, const gmd_search_status *status)
{
    bool is_noted = course->count && course->moments[course->count - 1].seconds >= status->seconds;
    course->count -= is_noted;
    course->step = course->step > 0 ? course->step : FIRST_STEP;
    add(course, status);
}
