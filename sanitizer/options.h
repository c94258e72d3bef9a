/* options.h - what the sanitizer does: a tier, and what differs from it. */
#ifndef GMD_OPTIONS_H
#define GMD_OPTIONS_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

#define UNMAP_NEVER UINT64_MAX

typedef struct sanitizer_options {
    uint64_t zone_bytes;       /* of a red zone, at either side at least */
    uint64_t quarantine_bytes; /* freed blocks that are held back, on each device */
    uint32_t quarantine_blocks;
    uint64_t interval_ns; /* live blocks and the quarantine are verified so often; 0: at the end */
    bool gathers;         /* freed blocks are filled a few at a time */
    bool is_striped;      /* of a large freed block a part is filled */
    bool fills_fresh;     /* new blocks are filled with NaN */
    bool watches_order;   /* happens-before: launches are watched */
    bool watches_reads;   /* what PyTorch's operators read is looked at */
    uint64_t unmap_bytes; /* blocks of this size and more lose their mapping when they are freed */
    bool waits_for_launches; /* each launch returns when its work is over */
    bool raises;             /* a finding is an exception in the program's next request, too */
    uint32_t most_reports;
    char report[1024]; /* the file of JSON lines */
} sanitizer_options;

/* "TIER" or "TIER,KEY:VALUE,...", where a tier is "cheap", "full" or "unmap". GMD_BAD_INPUT names
 * what is wrong and what there is. */
gmd_status sanitizer_options_parse(sanitizer_options *options, const char *text, gmd_error *error);

#endif
