/* gmd_advice_report.h - advice on settings for a person, and as JSON. */
#ifndef GMD_ADVICE_REPORT_H
#define GMD_ADVICE_REPORT_H

#include "gmd_advice.h"
#include "gmd_terminal.h"

#include <stdio.h>

typedef struct gmd_advice_view {
    gmd_terminal terminal;
    int columns; /* of the text; 80 where it does not go to a terminal */
} gmd_advice_view;

/* Writes the best settings as a line to copy, and how the others compare. */
gmd_status gmd_advice_write_text(const gmd_advice *advice, const gmd_advice_view *view, FILE *out,
                                 gmd_error *error);

/* docs/schema/advise.schema.json */
gmd_status gmd_advice_write_json(const gmd_advice *advice, const char *version, FILE *out,
                                 gmd_error *error);

#endif
