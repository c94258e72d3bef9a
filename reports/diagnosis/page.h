/* page.h - what is put on a screen of a diagnosis: places, moments, who holds the memory. */
#ifndef GMD_REPORTS_DIAGNOSIS_PAGE_H
#define GMD_REPORTS_DIAGNOSIS_PAGE_H

#include "gmd_diagnosis_report.h"
#include "gmd_report_text.h"

typedef struct page {
    const gmd_diagnosis *diagnosis;
    const gmd_diagnosis_view *view;
    const gmd_facts *facts; /* of the device that is reported */
    FILE *out;
    gmd_error *error;
} page;

/* Others tell nothing of reserved memory, and not of what PyTorch does with it. */
static inline bool page_is_of_pytorch(const page *p)
{
    return p->diagnosis->snapshot.recorder == GMD_RECORDER_PYTORCH;
}

/* A line that is put together piece by piece and wrapped as it is ended: what is put on `page` is
 * its text. */
typedef struct page_line {
    page page;
    gmd_held_text held;
} page_line;

void page_line_begin(page_line *line, const page *p);
void page_line_end(page_line *line, const page *p, int first_indent, int indent);
/* The same of a line that the screen has the first `column` columns of. */
void page_line_end_at(page_line *line, const page *p, int column, int indent);

/* "train.py:37 in train"; "train.py:37" */
void page_put_place(const page *p, uint32_t frame);
void page_put_line(const page *p, uint32_t frame);

/* The same, of a row that has so many columns before it: the function on a line of its own where
 * there is no room for it. The column behind it. */
int page_put_place_at(const page *p, int column, uint32_t frame);

enum { PAGE_AMOUNT = 14 }; /* columns of an amount, before what it is of */

/* "      20.0 MiB  cached for another stream" */
void page_put_amount(const page *p, uint64_t bytes, const char *text);

/* "event 9,312, iteration 3 of 6" */
void page_put_moment(const page *p, uint32_t moment);

/* "20.0 MiB for train.py:37 in train" */
void page_put_request(const page *p, uint64_t requested, uint32_t origin);

/* By line, so many of them, and by category where that is known. */
gmd_status page_put_holders(const page *p, uint32_t moment, uint32_t rows);

void page_put_causes(const page *p, const gmd_free_memory *free_memory);

#endif
