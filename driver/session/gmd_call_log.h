/* gmd_call_log.h - which calls the allocator under test makes to the device, so that each can be
 * made to fail in a run of its own. */
#ifndef GMD_CALL_LOG_H
#define GMD_CALL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GMD_LOGGED_CALL_MAX     ((size_t)1 << 20)
#define GMD_LOGGED_FUNCTION_MAX 256

/* One call of the allocator under test to the device, in a run with the log on. */
typedef struct gmd_logged_call {
    char function[48];
    uint32_t request; /* during which it was made; the number of requests: in the clean-up */
    uint32_t ordinal; /* from 1: among all calls of the function in that request, the driver's own
                         too */
} gmd_logged_call;

typedef struct call_log { /* in memory that the parent sees; taken as used */
    size_t count;
    _Atomic int is_full;
    struct {
        const char *name; /* the device's own text: compared by address */
        uint32_t request, calls;
    } functions[GMD_LOGGED_FUNCTION_MAX];
    gmd_logged_call calls[GMD_LOGGED_CALL_MAX];
} call_log;

void call_log_clear(call_log *log);

/* Whether a call that lay in shared memory is one of a function that has a name. */
bool call_log_is_sound(const gmd_logged_call *call);

/* The allocator made a call during `request`. */
void call_log_add(call_log *log, const char *function, uint32_t request);

#endif
