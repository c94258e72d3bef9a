/* gmd_log.h - what happens inside gmd, for people who debug gmd itself: GMD_LOG=session,device,...
 * in the environment of `gmd`. Users get reports; these lines may change with any version.
 *
 * A line has the category, the process, and a text: "gmd[4711] session: opened ...". Lines go to
 * the standard error that `gmd` was started with, also from processes whose standard error is muted
 * or closed later: gmd_log_begin() keeps a descriptor of its own, which children of fork() inherit.
 * Each line is one write(), so that those of several processes and threads do not mix. Nothing is
 * allocated and errno stays as it is: a line may be written in the middle of a call of the
 * allocator under test. Thread safety: any thread, after gmd_log_begin(). */
#ifndef GMD_LOG_H
#define GMD_LOG_H

#include "gmd_error.h"

#include <stdint.h>

/* X(CATEGORY, NAME in GMD_LOG, what it shows) */
#define GMD_LOG_CATEGORY_LIST(X)                                                                   \
    X(SUBJECT, "subject", "the library of an allocator: found, loaded, which functions it has")    \
    X(SESSION, "session", "sessions opened, renewed, closed; each request and its answer")         \
    X(DEVICE, "device", "each CUDA call of the allocator on the simulated device, its result")     \
    X(PROCESS, "process", "forks, kills and ends of processes")                                    \
    X(VERDICT, "verdict", "verdicts that count, and known ones")                                   \
    X(TRACE, "trace", "traces that were read")                                                     \
    X(FUZZ, "fuzz", "rounds of a campaign, findings, tries of the minimiser")                      \
    X(GATE, "gate", "parts of the gate")

enum {
#define GMD_LOG_BIT(category, name, what) GMD_LOG_BIT_##category,
    GMD_LOG_CATEGORY_LIST(GMD_LOG_BIT)
#undef GMD_LOG_BIT
};

/* GMD_LOG_BIT_*: a bit for each category that is on. Only gmd_log_begin() changes it. */
extern uint32_t gmd_log_on;

/* Reads the names, separated by commas; `all` is all of them. NULL or empty: none. To be called
 * once, before there are threads. GMD_BAD_INPUT: an unknown one; the message lists those that there
 * are. */
gmd_status gmd_log_begin(const char *names, gmd_error *error);

/* Whether the category is on, to spare what only its lines need. */
#define GMD_LOG_IS_ON(category) __builtin_expect(gmd_log_on >> GMD_LOG_BIT_##category & 1, 0)

/* GMD_LOG(SESSION, "opened %s", name): a line of text, cut off at some 1,000 bytes. The arguments
 * are evaluated only where the category is on. */
#define GMD_LOG(category, ...)                                                                     \
    do {                                                                                           \
        if (GMD_LOG_IS_ON(category)) {                                                             \
            gmd_log_line(GMD_LOG_BIT_##category, __VA_ARGS__);                                     \
        }                                                                                          \
    } while (0)

__attribute__((format(printf, 2, 3), cold)) void gmd_log_line(unsigned category, const char *format,
                                                              ...);

#endif
