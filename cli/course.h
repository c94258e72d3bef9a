/* course.h - how a campaign went over time, in few moments however long it takes. */
#ifndef GMD_CLI_COURSE_H
#define GMD_CLI_COURSE_H

#include "gmd_jobs.h"
#include "gmd_report.h"

enum { CLI_COURSE_MAX = 256 };

/* Zero-initialised is empty. Whenever it is full, every second moment goes, and further ones are
 * noted half as often. */
typedef struct cli_course {
    gmd_campaign_moment moments[CLI_COURSE_MAX];
    size_t count;
    double step, next; /* seconds */
} cli_course;

/* Notes where the campaign is, if it is time to; at its end in any case. */
void cli_course_note(cli_course *course, const gmd_search_status *status);
void cli_course_end(cli_course *course, const gmd_search_status *status);

#endif
