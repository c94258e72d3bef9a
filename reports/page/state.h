/* state.h - what a page holds while inputs are added to it. */
#ifndef GMD_REPORTS_PAGE_STATE_H
#define GMD_REPORTS_PAGE_STATE_H

#include "document.h"

#include "gmd_diagnosis.h"

typedef struct page_job {
    const gmd_diagnosis *diagnosis;
    const char *name;
} page_job;

struct gmd_page {
    document document;
    page_job *jobs; /* to be compared with each other */
    size_t job_count, job_capacity;
    char title[600];
    size_t untitled; /* inputs that the title has no room for */
    bool has_diff;   /* gmd diff compares them already */
};

typedef struct page_input {
    const char *name, *kind, *verdict, *summary;
} page_input;

/* The number of the input. */
uint32_t page_add_input(struct gmd_page *page, const page_input *input);

#endif
