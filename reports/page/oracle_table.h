/* oracle_table.h - the oracles of runs as a table of a page. */
#ifndef GMD_REPORTS_PAGE_ORACLE_TABLE_H
#define GMD_REPORTS_PAGE_ORACLE_TABLE_H

#include "document.h"

#include "gmd_report.h"

/* What each looked at, found and took; nothing where none judged. */
void table_of_oracles(document *to, const gmd_report *report, uint32_t input);

#endif
