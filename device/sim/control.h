/* control.h - configuration and reset. */
#ifndef GMD_SIM_CONTROL_H
#define GMD_SIM_CONTROL_H

#include "state.h"

/* The default configuration, unless the runtime is already running. Aborts when the host cannot
 * give the few tables that it needs. */
void sim_reset_to_default(void);
static inline void sim_start(void)
{
    if (__builtin_expect(sim.epoch == 0, 0)) {
        sim_reset_to_default();
    }
}

#endif
