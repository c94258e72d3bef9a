/* comparison.h - recorded jobs side by side: the lines that hold more in one than in another. */
#ifndef GMD_REPORTS_PAGE_COMPARISON_H
#define GMD_REPORTS_PAGE_COMPARISON_H

#include "state.h"

#include "gmd_error.h"

/* A table of the lines of all diagnoses of the page at their peaks; nothing where there are fewer
 * than two with anything in them, and where gmd diff has such a table. */
gmd_status comparison_add(struct gmd_page *page, gmd_error *error);

#endif
