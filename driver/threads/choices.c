#include "choices.h"

#include "schedule_state.h"

/* An access waits for another thread's write, it seems, after so many in a row: where no chance
 * passes the turn on, this does. */
#define SPINNING_ACCESSES 2000

/* Streams of random numbers of one seed, beside that of the choices. */
enum { PLAIN_DRAWS = 1, POINT_DRAWS };

/* Plain accesses are many, and most races need none of them: half of the seeds leave them out, and
 * the others take each or each eighth. What a seed chooses besides does not depend on it. */
static void draw_plain_accesses(void)
{
    static const uint64_t masks[] = {NEVER, NEVER, 0, 7};
    gmd_random random = {gmd_random_derive(turn_state.config.seed, PLAIN_DRAWS)};
    turn_state.plain_mask = turn_state.config.policy == SCHEDULER_EXPLICIT
                                ? NEVER
                                : masks[gmd_random_below(&random, 4)];
    for (unsigned i = 0; i < GMD_MAX_THREADS; i++) {
        turn_state.threads[i].plain.state = gmd_random_next(&random);
    }
}

/* Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees
 * of Finding Bugs (ASPLOS 2010): the threads' priorities are a random order, all above those that a
 * thread gets at the points. */
static void draw_priorities(gmd_random *random)
{
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        unsigned other = (unsigned)gmd_random_below(random, i + 1);
        turn_state.priorities[i] = turn_state.priorities[other];
        turn_state.priorities[other] = GMD_SCHEDULE_DEPTH_MAX + (int64_t)i;
    }
}

static void draw_points(void)
{
    gmd_random random = {gmd_random_derive(turn_state.config.seed, POINT_DRAWS)};
    for (unsigned i = 0; i < turn_state.config.point_count; i++) {
        turn_state.points[i] = 1 + gmd_random_below(&random, turn_state.config.steps);
    }
    draw_priorities(&random);
}

/* Some races need a switch at one point and none for long after it, others many of them: how often
 * the turn is passed on is the seed's choice, too, from every second yield point to every 64th. */
void choices_start(void)
{
    turn_state.random.state = turn_state.config.seed;
    turn_state.keep_below =
        UINT64_MAX - (UINT64_MAX >> (1 + gmd_random_next(&turn_state.random) % 6));
    draw_plain_accesses();
    draw_points();
}

/* The number of the point, from 1 on, that this step is; 0: it is none. */
static unsigned point_at(uint64_t step)
{
    for (unsigned i = 0; i < turn_state.config.point_count; i++) {
        if (turn_state.points[i] == step) {
            return i + 1;
        }
    }
    return 0;
}

static size_t other_than_first(size_t count)
{
    return 1 + gmd_random_next(&turn_state.random) % (count - 1);
}

static bool spins(const unsigned *ready)
{
    return turn_state.threads[ready[0]].accesses > SPINNING_ACCESSES;
}

static size_t next_explicit(const unsigned *ready, bool first_can_go_on)
{
    const scheduler_config *config = &turn_state.config;
    return turn_state.next_choice < config->choice_count ? config->choices[turn_state.next_choice++]
                                                         : first_can_go_on && spins(ready);
}

static size_t next_at_random(size_t count, bool first_can_go_on)
{
    if (!first_can_go_on) {
        return choices_any(count);
    }
    return gmd_random_next(&turn_state.random) < turn_state.keep_below ? 0
                                                                       : other_than_first(count);
}

static size_t next_bounded(const unsigned *ready, size_t count, bool first_can_go_on)
{
    bool is_point = point_at(++turn_state.step) != 0;
    if (!first_can_go_on) {
        return choices_any(count);
    }
    return is_point || spins(ready) ? other_than_first(count) : 0;
}

static size_t highest(const unsigned *ready, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (turn_state.priorities[ready[i]] > turn_state.priorities[ready[best]]) {
            best = i;
        }
    }
    return best;
}

/* At the i-th point the thread that would go on gets the i-th of the low priorities, and one that
 * spins one below all. */
static size_t next_by_priority(const unsigned *ready, size_t count, bool first_can_go_on)
{
    size_t best = highest(ready, count);
    unsigned point = point_at(++turn_state.step);
    if (point) {
        turn_state.priorities[ready[best]] = GMD_SCHEDULE_DEPTH_MAX - (int64_t)point;
        best = highest(ready, count);
    }
    if (best == 0 && first_can_go_on && spins(ready)) {
        turn_state.priorities[ready[0]] = --turn_state.lowest;
        best = highest(ready, count);
    }
    return best;
}

size_t choices_next(const unsigned *ready, size_t count, bool first_can_go_on)
{
    if (count == 1) {
        return 0;
    }
    switch (turn_state.config.policy) {
    case SCHEDULER_EXPLICIT:
        return next_explicit(ready, first_can_go_on) % count;
    case SCHEDULER_BOUNDED:
        return next_bounded(ready, count, first_can_go_on);
    case SCHEDULER_PCT:
        return next_by_priority(ready, count, first_can_go_on);
    default:
        return next_at_random(count, first_can_go_on);
    }
}

size_t choices_any(size_t count)
{
    if (count == 1) {
        return 0;
    }
    if (turn_state.config.policy == SCHEDULER_EXPLICIT) {
        return turn_state.next_choice < turn_state.config.choice_count
                   ? turn_state.config.choices[turn_state.next_choice++] % count
                   : 0;
    }
    return gmd_random_next(&turn_state.random) % count;
}
