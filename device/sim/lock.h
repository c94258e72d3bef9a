/* lock.h - the lock of the whole runtime. */
#ifndef GMD_SIM_LOCK_H
#define GMD_SIM_LOCK_H

void sim_lock(void);
void sim_unlock(void);

#endif
