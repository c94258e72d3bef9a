/* diff_figures.h - the figures of two sides, matched by their names. */
#ifndef GMD_REPORTS_DIFF_FIGURES_H
#define GMD_REPORTS_DIFF_FIGURES_H

#include "gmd_diff_report.h"

/* Fills the diff's figures. False: no host memory. */
bool diff_figures_match(gmd_diff *diff);

/* That which there is, for its name. */
static inline const gmd_diff_figure *diff_figure_of(const gmd_diff_figure_row *row)
{
    return row->before ? row->before : row->after;
}

#endif
