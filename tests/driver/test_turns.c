/* Each corruption of who has the turn is found by the walk that is there for it. White-box: the
 * tests set the scheduler's state. */
#include "gmd_test.h"
#include "schedule_state.h"

#include <string.h>

/* The first of three threads runs, the second could, and the third is not there yet. */
static void begin_turns(void)
{
    turn_state.config.thread_count = 3;
    turn_state.threads[0].state = THREAD_RUNNING;
    turn_state.threads[1].state = THREAD_READY;
    turn_state.current = 0;
    turn_state.joined = 2;
}

/* The scheduler is refused while `field` is `value`. */
#define EXPECT_TURNS(field, value, sentence)                                                       \
    do {                                                                                           \
        begin_turns();                                                                             \
        assert_null(turns_violation());                                                            \
        turn_state.field = value;                                                                  \
        const char *violation_ = turns_violation();                                                \
        memset(&turn_state, 0, sizeof turn_state);                                                 \
        assert_non_null(violation_);                                                               \
        assert_string_equal(violation_, sentence);                                                 \
    } while (0)

TEST(each_corruption_of_turns_is_found)
{
    const char *const one = "the thread that runs is the one that has the turn";
    EXPECT_TURNS(threads[1].state, THREAD_RUNNING, one);
    EXPECT_TURNS(threads[0].state, THREAD_BLOCKED, one);
    EXPECT_TURNS(current, 1, one);
    EXPECT_TURNS(current, NOBODY, one);
    EXPECT_TURNS(joined, 3, "the threads that have joined are counted");
    EXPECT_TURNS(threads[2].state, THREAD_READY, "the threads that have joined are counted");
    EXPECT_TURNS(threads[1].held_count, HELD_MAX + 1, "the locks of a thread are in its list");
}
