/* turns.h - who has the turn. With the state's lock held, but where it says otherwise. */
#ifndef GMD_TURNS_H
#define GMD_TURNS_H

#include "schedule_state.h"

void gmd_turns_seed(uint64_t seed);
size_t gmd_turns_choose(size_t count, bool first_can_go_on); /* one of `count` */
/* Decides who has the turn next; `caller`, the calling thread or NULL, needs no wake-up. */
void gmd_turns_pass(const gmd_turns_thread *caller);
/* All that wait for the object (NULL: any) try again; who is first is a choice like any other. */
void gmd_turns_wake(gmd_wait_reason reason, const void *object);
/* These give the lock back, and return when `t`, the calling thread, has the turn. */
void gmd_turns_seek(gmd_turns_thread *t);
void gmd_turns_block(gmd_turns_thread *t, gmd_wait_reason reason, const void *object,
                     bool is_timed);
void gmd_turns_yield(gmd_turns_thread *t); /* called without the lock */

#endif
