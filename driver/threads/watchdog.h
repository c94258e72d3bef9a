/* watchdog.h - takes the turn from a thread that blocks or spins outside the scheduler's control.
 */
#ifndef GMD_WATCHDOG_H
#define GMD_WATCHDOG_H

void *gmd_turns_watch(void *unused); /* a thread's body, until gmd_turns.ending is posted */

#endif
