/* page.h - a page that inputs are added to. */
#ifndef GMD_REPORTS_PAGE_PAGE_H
#define GMD_REPORTS_PAGE_PAGE_H

#include "document.h"
#include "gmd_page.h"

struct gmd_page {
    document document;
    const gmd_diagnosis **diagnoses; /* to be compared with each other */
    uint32_t *diagnosis_inputs;      /* what each is of */
    size_t diagnosis_count, diagnosis_capacity, input_capacity;
    char title[600];
    size_t untitled; /* inputs that the title has no room for */
    bool has_diff;   /* gmd diff compares them already */
};

typedef struct page_input {
    const char *name, *kind, *verdict, *summary;
} page_input;

/* The number of the input. */
uint32_t page_add_input(gmd_page *page, const page_input *input);

/* The devices of a diagnosis as histories, with its findings and tables. `marks` are of the first
 * device. */
gmd_status page_add_histories(gmd_page *page, const gmd_diagnosis *diagnosis, uint32_t input,
                              gmd_error *error);

#endif
