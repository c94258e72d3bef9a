/* choices.h - which thread goes on: by a seed at random, with a bounded number of preemptions or by
 * priorities (PCT), or by explicit choices. With the state's lock held. */
#ifndef GMD_CHOICES_H
#define GMD_CHOICES_H

#include <stdbool.h>
#include <stddef.h>

/* Before the first choice; the configuration is there. */
void choices_start(void);

/* Which of `count` threads gets the turn: an index into `ready`, numbers of threads, the one that
 * has the turn first if `first_can_go_on`. */
size_t choices_next(const unsigned *ready, size_t count, bool first_can_go_on);

/* One of `count` for anything else. */
size_t choices_any(size_t count);

#endif
