/* compared_line.h - the line of code that a row of a comparison stands for. */
#ifndef GMD_REPORTS_COMPARED_LINE_H
#define GMD_REPORTS_COMPARED_LINE_H

#include "gmd_comparison.h"

#include <stdio.h>

/* "train.py:37 train"; `put_text` writes text of the snapshot as `out` needs it. */
void compared_line_put(const gmd_compared_row *row, void (*put_text)(const char *, FILE *),
                       FILE *out);

#endif
