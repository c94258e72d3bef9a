/* gmd_oracle_list.h - the list of oracles and of their verdicts: what stands here stands nowhere
 * else. Declarations, the order of judging, severities, causes, known lists, JSON, SARIF's rules
 * and the table in docs/oracles.md are made from it.
 *
 * ORACLE(name, severity, holds_when): in the order in which they judge, which is that of the
 * questions one would ask: did it break or break a rule, is there memory, is it big enough, is it
 * mine alone and nobody's any more, is a refusal true, do the sums agree, is it given back.
 * Severity: 1 is the worst, and findings are reported in its order: memory that is not the caller's
 * alone, then no answer, then wrong answers, then what is left, then figures.
 *
 * VOICE(name, severity, holds_when): likewise, but the driver judges it where a workload asks for
 * it; it is no oracle.
 *
 * KIND(oracle, kind, meaning, parties): a verdict, which is known by its name for good: never
 * rename one. Parties in brackets are not always there. */
#ifndef GMD_ORACLE_LIST_H
#define GMD_ORACLE_LIST_H

#define GMD_ORACLE_LIST(ORACLE, VOICE, KIND)                                                       \
    ORACLE(progress, 8, "no crash, no assertion, no hang, no call slower than its budget")         \
    KIND(progress, crash, "the process died of a signal", "signal, at")                            \
    KIND(progress, exception, "a C++ exception left the allocator", "type, at")                    \
    KIND(progress, exit, "the process was ended", "at")                                            \
    KIND(progress, hang, "no answer within the time of a call", "at")                              \
    KIND(progress, deadlock, "a wait that nobody can end",                                         \
         "[lock], [lock2], [lock3], [lock4], [wait]")                                              \
    KIND(progress, failed, "an error other than out of memory", "error, [fault]")                  \
    KIND(progress, left_call, "control left a call by another way than its return", "at")          \
    KIND(progress, device_refuses, "a call that gmd makes itself is refused", "call, error")       \
    KIND(progress, overwrote_gmd, "memory that is gmd's own was written over", "")                 \
    KIND(progress, not_reused, "the same requests again take more memory each time", "")           \
    KIND(progress, crash_in_repetition, "the same requests again end in a crash", "signal")        \
    KIND(progress, growth, "more is held after more rounds with the same blocks live", "held")     \
    ORACLE(api_misuse, 9, "the allocator makes no call that the CUDA API forbids")                 \
    KIND(api_misuse, forbidden_call, "a call breaks a rule", "function, error, [rule]")            \
    ORACLE(backing, 2, "every live block lies in memory that the right device has handed out")     \
    KIND(backing, wrong_device, "a block lies in another device's memory", "when")                 \
    KIND(backing, no_memory, "a block lies where no memory is", "when, [bytes]")                   \
    KIND(backing, graph_without_memory, "a launched graph works where no memory is", "")           \
    KIND(backing, device_lost, "queued work touched memory that is not there", "")                 \
    ORACLE(alignment, 13, "every pointer is aligned as promised")                                  \
    KIND(alignment, misaligned, "a block is not aligned as promised", "")                          \
    ORACLE(size, 6, "a block can hold what was asked")                                             \
    KIND(size, booked_short, "fewer bytes were booked than asked for", "[bytes]")                  \
    KIND(size, ends_early, "the device's memory ends within the block", "[bytes]")                 \
    ORACLE(overlap, 1, "no two live blocks share a byte")                                          \
    KIND(overlap, shared, "two live blocks share bytes", "")                                       \
    KIND(overlap, no_host_memory, "gmd itself ran out of memory: nothing more is judged", "")      \
    ORACLE(private_pool, 3, "memory of a private pool serves nobody else while the pool is held")  \
    KIND(private_pool, taken, "a request that went elsewhere got a held pool's memory", "to")      \
    KIND(private_pool, given_back, "a held pool's memory, which a graph uses, was given back", "") \
    KIND(private_pool, handed_on, "a graph and another's work met in memory", "found_by, left_by") \
    KIND(private_pool, call_failed, "the end or release of a pool failed", "failure")              \
    KIND(private_pool, split, "two blocks of a pool without splits lie in one allocation", "")     \
    KIND(private_pool, unused, "a request was refused that a pool's free block was to serve", "")  \
    KIND(private_pool, source, "the memory of a pool's own source was not kept to", "what")        \
    KIND(private_pool, restored, "a pool was brought back otherwise than it was", "told")          \
    ORACLE(stream_order, 4,                                                                        \
           "memory gets a new owner only when its earlier owner's work runs before")               \
    KIND(stream_order, reused_early, "a new owner need not wait for the earlier one's work", "")   \
    KIND(stream_order, reused_in_capture, "work of one graph shares memory without an order", "")  \
    KIND(stream_order, given_back_early, "memory was given back under queued work", "")            \
    KIND(stream_order, handed_on_early, "work found what a later owner had written", "")           \
    KIND(stream_order, no_host_memory, "gmd itself ran out of memory: nothing more is judged", "") \
    ORACLE(data, 5, "what was written to a block is what is read from it until it is freed")       \
    KIND(data, aliased, "a block holds what another live block's work wrote", "")                  \
    KIND(data, overwritten, "a block does not hold what its own work wrote", "")                   \
    KIND(data, foreign_value, "work found a value in its block that no work had written", "")      \
    ORACLE(oom_retry, 10,                                                                          \
           "out of memory is true, and the cache was given back before it was "                    \
           "reported")                                                                             \
    KIND(oom_retry, room_was_left, "refused, and the limit and the device leave enough", "")       \
    KIND(oom_retry, never_served, "a little is refused of an empty device", "")                    \
    KIND(oom_retry, served_at_once, "refused, and served when asked again", "")                    \
    KIND(oom_retry, served_when_idle, "refused, and served when no work is pending", "")           \
    KIND(oom_retry, served_when_emptied, "refused, and served when the cache is emptied",          \
         "[although]")                                                                             \
    KIND(oom_retry, served_when_reopened, "refused until the open private pool was closed", "")    \
    KIND(oom_retry, cache_kept, "refused with a cache that could be given back", "")               \
    KIND(oom_retry, held_when_all_is_free, "after a refusal memory is held for good", "")          \
    KIND(oom_retry, refused_when_all_is_free, "refused for good", "although")                      \
    KIND(oom_retry, died_when_asked_again, "the process ended when asked again", "by")             \
    KIND(oom_retry, failed_when_asked_again, "another error when asked again", "error")            \
    ORACLE(peak_bound, 12,                                                                         \
           "reserved memory passes neither the limit that was set nor the device, and a "          \
           "scenario's memory not the bound that it states")                                       \
    KIND(peak_bound, reserved, "reserved_bytes passed", "bound")                                   \
    KIND(peak_bound, reserved_peak, "reserved_bytes_peak passed", "bound")                         \
    KIND(peak_bound, handed_out, "what the device handed out passed", "bound")                     \
    KIND(peak_bound, stated, "a scenario's memory passed the bound that it states", "figure")      \
    ORACLE(accounting, 16, "the statistics agree with the live set and with the device")           \
    KIND(accounting, out_of_order, "a figure is more than it may be", "figure, above, [bytes]")    \
    KIND(accounting, wrong, "a figure is not what it must be", "figure, truth, [bytes]")           \
    KIND(accounting, segments, "reserved bytes without a segment, or the other way round", "")     \
    KIND(accounting, oom_count, "refusals are not counted once each", "request")                   \
    KIND(accounting, low_peak, "a peak is below what was seen", "figure")                          \
    KIND(accounting, device, "reserved bytes are not what the device handed out", "")              \
    KIND(accounting, raised_by_free, "a free raised allocated_bytes", "")                          \
    KIND(accounting, freed_short, "a free lowered allocated_bytes by too little", "")              \
    KIND(accounting, changed, "allocated_bytes changed without an allocation or a free", "")       \
    KIND(accounting, lowered_by_alloc, "an allocation lowered allocated_bytes", "")                \
    KIND(accounting, kept_active, "blocks stay active that wait for nothing (promise prompt)", "") \
    KIND(accounting, no_statistics, "gmd_get_stats failed after it had worked before", "")         \
    ORACLE(snapshot, 14, "blocks tile their segments, and their sums are the statistics")          \
    KIND(snapshot, unknown_state, "a block is in no known state", "")                              \
    KIND(snapshot, misplaced, "a block is not where it was due", "state")                          \
    KIND(snapshot, segments_overlap, "segments overlap, or are out of order", "")                  \
    KIND(snapshot, short_segment, "the last block does not end with its segment", "")              \
    KIND(snapshot, no_memory, "a segment lies where no memory is", "")                             \
    KIND(snapshot, unmerged, "free neighbours were not merged (promise coalescing)", "")           \
    KIND(snapshot, wrong_pool, "a live block is shown in another pool", "asked")                   \
    KIND(snapshot, wrong_size, "a live block is shown with another size", "")                      \
    KIND(snapshot, live_block_missing, "a live block is not shown as one", "shown")                \
    KIND(snapshot, dead_block_shown, "an allocated block is shown that is not live", "")           \
    KIND(snapshot, wrong_sum, "the blocks do not add up to a statistic", "figure")                 \
    KIND(snapshot, walk_failed, "gmd_walk failed after it had worked before", "")                  \
    KIND(snapshot, no_host_memory, "gmd itself ran out of memory: nothing more is judged", "")     \
    ORACLE(leak, 11, "with everything freed and the cache emptied, the device is as it was")       \
    KIND(leak, reserved, "the allocator itself counts reserved bytes (a real device)", "")         \
    KIND(leak, allocations, "device allocations are left", "")                                     \
    KIND(leak, events, "events are left, more than waits could need", "")                          \
    KIND(leak, streams, "streams are left", "")                                                    \
    KIND(leak, mapped_memory, "mapped memory is left", "")                                         \
    KIND(leak, handles, "handles of physical memory are left", "")                                 \
    KIND(leak, reservations, "reservations of addresses are left", "")                             \
    KIND(leak, host_memory, "the same requests again take more of the host's memory each time",    \
         "in")                                                                                     \
    ORACLE(device_state, 15,                                                                       \
           "a call leaves the thread's current device, last error and capture mode alone")         \
    KIND(device_state, current_device, "the thread's current device was changed", "")              \
    KIND(device_state, last_error, "the thread's last CUDA error was changed", "")                 \
    KIND(device_state, cleared_error, "the caller's own CUDA error was cleared", "")               \
    KIND(device_state, capture_mode, "the thread's capture mode was changed", "")                  \
    ORACLE(misuse, 7,                                                                              \
           "a free of what is no live block is refused or ignored, and changes "                   \
           "nothing")                                                                              \
    KIND(misuse, crash, "the process died of a signal", "free, signal")                            \
    KIND(misuse, exit, "the process was ended", "free")                                            \
    KIND(misuse, hang, "no answer within the time of a call", "free")                              \
    KIND(misuse, figure_changed, "a statistic was changed", "free, figure")                        \
    KIND(misuse, thread_changed, "the thread's device or last error was changed", "free")          \
    KIND(misuse, passed_on, "the device was asked to free it", "free, function")                   \
    KIND(misuse, memory_taken, "a live block's or another library's memory was taken away",        \
         "free")                                                                                   \
    ORACLE(determinism, 18,                                                                        \
           "the same requests on the same device and schedule get the same "                       \
           "answers")                                                                              \
    KIND(determinism, differs, "the second run's answer differs", "what, at")                      \
    KIND(determinism, failed_again, "the second run ended with a violation", "verdict")            \
    ORACLE(reference, 17,                                                                          \
           "an allocator of PyTorch's algorithm answers as the reference allocator does")          \
    KIND(reference, differs, "the reference allocator's answer differs", "what, at")               \
    VOICE(expect, 19, "each request is answered as the workload expects")                          \
    KIND(expect, served, "a request was served that was expected to be refused", "")               \
    KIND(expect, refused, "a request was refused that was expected to be served", "")              \
    KIND(expect, script_ended, "a script came to its end by being out of memory", "")

#endif
