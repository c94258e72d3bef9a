/* campaign_tables.h - a campaign, or an exhaustive search, as tables of a page. */
#ifndef GMD_REPORTS_PAGE_CAMPAIGN_TABLES_H
#define GMD_REPORTS_PAGE_CAMPAIGN_TABLES_H

#include "document.h"

#include "gmd_report.h"

/* How it went over time, and what it covered until its end; nothing where that is not known. */
void table_of_campaign(document *to, const gmd_report *report, uint32_t input);
void table_of_coverage(document *to, const gmd_report *report, uint32_t input);

#endif
