/* checker.h - what the parts of gmd_check_history share: check.c checks the requests and
 * statistics, check_end.c the state in which a history ends. */
#ifndef GMD_CHECKER_H
#define GMD_CHECKER_H

#include "gmd_check_input.h"

#include "gmd_quirks.h"

#include "gmd_session.h"
#include "gmd_session_state.h"

typedef struct checker {
    const gmd_check_input *input;
    gmd_session *session;
    gmd_check *result;
    bool sees_addresses; /* simulated device */
    bool knows_places;   /* the allocator's walk gives recorded addresses: true on both devices */
    bool has_quirks;
    size_t next_op;    /* of the operations file */
    size_t next_phase; /* of NAME.json */
    int64_t quirk_counts[GMD_QUIRK_KINDS];
} checker;

/* The first difference: the history has `expected` where the run has what `format` says. */
__attribute__((format(printf, 5, 6))) void checker_differ(checker *c, uint64_t request,
                                                          const char *what, const char *expected,
                                                          const char *format, ...);

#endif
