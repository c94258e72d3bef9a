/* report.h - what was found, in words on standard error and as a line of JSON in a file. Each is
 * written and flushed before anything else is done. Sync: the owner's. */
#ifndef GMD_REPORT_H
#define GMD_REPORT_H

#include "guarded_block.h"
#include "options.h"
#include "sweep_task.h"

#include <stddef.h>

typedef enum finding_kind {
    FINDING_WRITE_AFTER_FREE,
    FINDING_WRITE_PAST_END,
    FINDING_WRITE_BEFORE_START,
    FINDING_UNINITIALISED_READ,
    FINDING_READ_AFTER_FREE,
    FINDING_BAD_FREE,    /* of what is no live block */
    FINDING_FREED_EARLY, /* these three by happens-before */
    FINDING_REUSED_EARLY,
    FINDING_USED_AFTER_FREE,
    FINDING_ILLEGAL_ACCESS, /* to what is not mapped */
} finding_kind;

/* What speaks for it: a set. */
enum {
    EVIDENCE_BYTES = 1,          /* changed, or read where they should not have been */
    EVIDENCE_REQUEST = 2,        /* the program's request itself */
    EVIDENCE_HAPPENS_BEFORE = 4, /* no order between what the streams do */
    EVIDENCE_POSSIBLE = 8, /* likewise, by a pointer that may be stale: alone it is no finding */
    EVIDENCE_FAULT = 16,   /* the device refused an access */
};

typedef enum finding_moment {
    MOMENT_FREE,   /* the program freed the block */
    MOMENT_REUSE,  /* a freed block was about to be given to a later request */
    MOMENT_CHECK,  /* a check, asked for, by interval or at the end */
    MOMENT_READ,   /* an operator of PyTorch got the memory as input */
    MOMENT_QUEUED, /* work was queued */
    MOMENT_FAULT,  /* CUDA reported an illegal access */
} finding_moment;

/* Why a block is taken for the one that an illegal access was meant for: CUDA does not tell the
 * address. */
typedef enum suspicion {
    SUSPECT_NONE,      /* no block is known */
    SUSPECT_PARAMETER, /* it was freed, and the work had its address */
    SUSPECT_BOUNDS,    /* it is live, and the work had its address */
    SUSPECT_LATEST,    /* it is the one that was freed last */
} suspicion;

typedef struct finding {
    finding_kind kind;
    finding_moment moment;
    guarded_block block; /* as it was then */
    sweep_find changed;  /* addresses */
    uint64_t expected;   /* the pattern */
    guarded_block owner; /* who has the memory of the first changed byte now; address 0: nobody */
    uint32_t current_stack; /* of a read: where it was queued */
    uint64_t now_ns;
    unsigned evidence;
    const char *use; /* happens-before: a kernel's name, or "copy"; NULL: none */
    uint32_t use_stack;
    cudaStream_t use_stream;
    suspicion suspicion; /* of an illegal access */
} finding;

/* A stack as text, a line FILE:LINE:FUNCTION for each frame, the innermost first; gives the bytes,
 * which are not terminated. */
typedef size_t stack_text_fn(uint32_t stack, char *text, size_t size);

typedef struct report report;

/* No file is made before the first finding. NULL: no host memory. */
report *report_create(const sanitizer_options *options, stack_text_fn *stack_text);
void report_destroy(report *r);

/* What has the same cause, by its stacks, is one finding: it is reported once, and once more when
 * there is other evidence of it. */
void report_finding(report *r, const finding *f);
uint64_t report_count(const report *r); /* of findings, reported or beyond most_reports */

/* One sentence on the latest finding, for an exception; "": none. */
const char *report_latest(const report *r);

typedef struct report_figures {
    uint64_t allocations, frees, verified_blocks, unwatched_blocks, lost_finds;
    uint64_t zone_peak_bytes, quarantine_peak_bytes, mapped_peak_bytes;
    const char *incomplete; /* why the last check could not be made; NULL: it was */
} report_figures;

void report_summary(report *r, const report_figures *figures);

#endif
