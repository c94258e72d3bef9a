/* gmd_advised_leak.h - what leaks in a job that advice is given on. */
#ifndef GMD_ADVISED_LEAK_H
#define GMD_ADVISED_LEAK_H

#include "gmd_job_finding.h"

#include <stdbool.h>
#include <stdint.h>

enum { GMD_ADVICE_FILE = 512 };

/* What gmd diagnose finds to leak. No setting gives it back: it is to be mended first. */
typedef struct gmd_advised_leak {
    gmd_finding_class class;
    uint64_t bytes, bytes_per_iteration;
    char file[GMD_ADVICE_FILE]; /* "": no frames were recorded */
    uint32_t line;
    bool is_line_inferred; /* it is the line that led to it */
} gmd_advised_leak;

#endif
