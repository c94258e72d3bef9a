/* frames.h - call frames: the allocator under test is being called.
 *
 * What the driver does to the thread before and after such a call is seen, and a call that would
 * wait for ever is reported. Where threads are interleaved, other requests run while one thread is
 * in the allocator: what belongs to its request is put aside in the frame, and back afterwards. The
 * driver's own calls of the CUDA API are the harness's: no planted fault hits them, and nobody
 * takes them for the allocator's. */
#ifndef GMD_FRAMES_H
#define GMD_FRAMES_H

#include "gmd_host_heap.h"
#include "gmd_session_state.h"

/* What belongs to the request under way: other threads' requests may run while the allocator is
 * being called in this one. */
typedef struct call_frame {
    gmd_view view;
    gmd_stats stats_before;
    uint64_t request_index;
    gmd_thread_state thread_before;
} call_frame;

/* Which of the interleaved threads are in the allocator. The calling thread's number is that given
 * to overlap_begin_thread. */
typedef struct overlap {
    bool is_inside[GMD_MAX_THREADS]; /* of the allocator under test */
    bool was_overlapped[GMD_MAX_THREADS];
    uint64_t faults_hit[GMD_MAX_THREADS];
    const char *faulted[GMD_MAX_THREADS][GMD_FAULTED_MAX];
    unsigned inside_count;
} overlap;

void overlap_begin_thread(unsigned thread);
/* Whatever a request does may change what those under way find. */
void overlap_note(overlap *in, unsigned thread_count);
/* How many other threads are in the allocator; 0 where threads are not interleaved. */
unsigned overlap_others_inside(const gmd_session *session);

/* From here on a call that would wait for ever is reported to `stuck` (gmd_self_deadlock.h), which
 * does not return. */
void frames_watch_waits(gmd_session *session,
                        void (*stuck)(void *session, const char *what, const char *lock));

/* Around every call of the allocator under test; `function`: its name, "gmd_malloc". */
void enter_allocator(gmd_session *session, const char *function, call_frame *frame);
void leave_allocator(gmd_session *session, const call_frame *frame);

/* For assertions, between requests: the sentence that does not hold; NULL: all does. */
const char *frames_violation(const gmd_session *session);

/* Around a question to it that is no request. */
void enter_for_question(const gmd_session *session, const char *function);
static inline void leave_question(void)
{
    self_deadlock_leave();
    host_heap_leave();
}

/* A planted fault has answered a call of this thread's request. */
void frames_note_fault(gmd_session *session, const char *function);

#endif
