/* watchdog.h - takes the turn from a thread that blocks or spins outside the scheduler's control.
 */
#ifndef GMD_WATCHDOG_H
#define GMD_WATCHDOG_H

void *turns_watch(void *unused); /* a thread's body, until turn_state.ending is posted */

#endif
