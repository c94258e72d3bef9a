/* checks.c - which check shows a verdict: checks.h.
 *
 * A verdict without a row here, and one whose kind is not known, is checked with all that its
 * oracle has. */
#include "checks.h"

#include "gmd_min.h"

#include <string.h>

/* `verdict` is "KIND" or "KIND NAME=VALUE...": as much of an identity as must be the same. The
 * group is where programs make the check; NULL: in a place of its own. */
typedef struct check_row {
    const char *name, *group, *oracle, *verdict;
} check_row;

#define IN_ORDER(name, figure, above)                                                              \
    {                                                                                              \
        name, "statistics", "accounting", "out_of_order figure=" figure " above=" above            \
    }
#define AT_END(name, figure)                                                                       \
    {                                                                                              \
        name, "end", "accounting", "wrong figure=" figure " truth=nothing_live"                    \
    }
#define PEAK(name, figure)                                                                         \
    {                                                                                              \
        name, "statistics", "accounting", "low_peak figure=" figure                                \
    }

static const check_row rows[] = {
    IN_ORDER("allocated_active", "allocated_bytes", "active_bytes"),
    IN_ORDER("active_reserved", "active_bytes", "reserved_bytes"),
    IN_ORDER("allocated_reserved", "allocated_bytes", "reserved_bytes"),
    IN_ORDER("requested_active", "requested_bytes", "active_bytes"),
    IN_ORDER("split_reserved", "inactive_split_bytes", "reserved_bytes"),
    IN_ORDER("peaks_allocated_active", "allocated_bytes_peak", "active_bytes_peak"),
    IN_ORDER("peaks_active_reserved", "active_bytes_peak", "reserved_bytes_peak"),
    IN_ORDER("peaks_allocated_reserved", "allocated_bytes_peak", "reserved_bytes_peak"),
    IN_ORDER("live_allocated", "live_bytes", "allocated_bytes"),
    IN_ORDER("live_requested", "live_bytes", "requested_bytes"),
    {"requested_live", "statistics", "accounting", "wrong figure=requested_bytes truth=live_bytes"},
    {"count_live", "statistics", "accounting", "wrong figure=allocation_count truth=live_count"},
    PEAK("peak_allocated", "allocated_bytes"),
    PEAK("peak_reserved", "reserved_bytes"),
    PEAK("peak_active", "active_bytes"),
    {"segments", "statistics", "accounting", "segments"},
    {"handed", "statistics", "accounting", "segments"},
    {"handed", "statistics", "accounting", "device"},
    AT_END("end_allocated", "allocated_bytes"),
    AT_END("end_active", "active_bytes"),
    AT_END("end_requested", "requested_bytes"),
    AT_END("end_count", "allocation_count"),
    {"end_active", "end", "accounting", "kept_active"},
    {"freed", NULL, "accounting", "freed_short"},
    {"freed", NULL, "accounting", "raised_by_free"},
    {"ooms", NULL, "accounting", "oom_count"},
    {"backed_at_once", NULL, "backing", "no_memory when=handed_out"},
    {"backed_at_once", NULL, "backing", "wrong_device when=handed_out"},
    {"backed_later", NULL, "backing", "no_memory when=live"},
    {"backed_later", NULL, "backing", "wrong_device when=live"},
    {"backed_graph", NULL, "backing", "graph_without_memory"},
    {"current_device", NULL, "device_state", "current_device"},
    {"last_error", NULL, "device_state", "last_error"},
    {"cleared_error", NULL, "device_state", "cleared_error"},
    {"capture_mode", NULL, "device_state", "capture_mode"},
    {"leak_reserved", NULL, "leak", "reserved"},
    {"leak_reserved", NULL, "leak", "allocations"},
    {"leak_held", NULL, "leak", "allocations"},
    {"leak_held", NULL, "leak", "mapped_memory"},
    {"leak_held", NULL, "leak", "handles"},
    {"leak_unseen", NULL, "leak", "events"}, /* only the allocator can count them */
    {"leak_unseen", NULL, "leak", "streams"},
    {"leak_unseen", NULL, "leak", "reservations"},
    {"at_once", "question", "oom_retry", "served_at_once"},
    {"at_once", "question", "oom_retry", "died_when_asked_again"},
    {"at_once", "question", "oom_retry", "failed_when_asked_again"},
    {"idle", "question", "oom_retry", "served_when_idle"},
    {"idle", "question", "oom_retry", "died_when_asked_again"},
    {"idle", "question", "oom_retry", "failed_when_asked_again"},
    {"emptied", "question", "oom_retry", "served_when_emptied"},
    {"emptied", "question", "oom_retry", "died_when_asked_again"},
    {"emptied", "question", "oom_retry", "failed_when_asked_again"},
    {"cache_kept", "question", "oom_retry", "cache_kept"},
    {"reopened", "question", "oom_retry", "served_when_reopened"},
    {"asked_free", "question", "oom_retry", "died_when_asked_again"},
    {"asked_free", "question", "oom_retry", "failed_when_asked_again"},
    {"all_free", "question", "oom_retry", "room_was_left"},
    {"all_free", "question", "oom_retry", "never_served"},
    {"all_free", "question", "oom_retry", "held_when_all_is_free"},
    {"all_free", "question", "oom_retry", "refused_when_all_is_free"},
    {"limit_reserved", NULL, "peak_bound", "reserved"},
    {"limit_reserved", NULL, "peak_bound", "reserved_peak"},
    {"limit_held", NULL, "peak_bound", "handed_out"},
    {"wraps", NULL, "size", "booked_short bytes=near_2^64"},
    {"booked", NULL, "size", "booked_short"},
    {"order_of_work", NULL, "stream_order", "reused_early"},
    {"order_in_graph", NULL, "stream_order", "reused_in_capture"},
    {"order_by_failure", NULL, "stream_order", "given_back_early"},
};

enum { ROWS = sizeof rows / sizeof *rows };

bool checks_oracle(const gmd_reproducer *reproducer, const char *oracle)
{
    size_t length = strlen(oracle);
    const char *verdict = reproducer->verdict;
    return !verdict || (strncmp(verdict, oracle, length) == 0 && strchr(".", verdict[length]));
}

/* How much of the verdict the row names: 0, where it is about another one. */
static size_t match(const gmd_reproducer *r, const check_row *row)
{
    size_t oracle = strlen(row->oracle), length = strlen(row->verdict);
    bool is_oracles = r->verdict && checks_oracle(r, row->oracle) && r->verdict[oracle];
    const char *rest = is_oracles ? r->verdict + oracle + 1 : "";
    bool is_same = strncmp(rest, row->verdict, length) == 0;
    return is_same && (!rest[length] || rest[length] == ' ') ? length : 0;
}

/* The rows that match best are the verdict's. */
static bool holds(const gmd_reproducer *r, const check_row *row)
{
    size_t best = 0;
    for (size_t i = 0; i < ROWS; i++) {
        size_t length = match(r, &rows[i]);
        best = gmd_max(length, best);
    }
    return checks_oracle(r, row->oracle) && (best == 0 || match(r, row) == best);
}

bool checks_has(const gmd_reproducer *reproducer, const char *check)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, check) == 0 && holds(reproducer, &rows[i])) {
            return true;
        }
    }
    return false;
}

bool checks_has_group(const gmd_reproducer *reproducer, const char *group)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].group && strcmp(rows[i].group, group) == 0 && holds(reproducer, &rows[i])) {
            return true;
        }
    }
    return false;
}

void checks_choose(const gmd_reproducer *reproducer, fragment_choice *choice)
{
    static const char *const oracles[] = {"accounting", "alignment",  "api_misuse",   "expect",
                                          "overlap",    "peak_bound", "private_pool", "progress"};
    for (size_t i = 0; i < sizeof oracles / sizeof *oracles; i++) {
        fragment_flag(choice, oracles[i], checks_oracle(reproducer, oracles[i]));
    }
    for (size_t i = 0; i < ROWS; i++) {
        fragment_flag(choice, rows[i].name, holds(reproducer, &rows[i]));
    }
    fragment_flag(choice, "statistics", checks_has_group(reproducer, "statistics"));
}
