#include "thread.h"

#include "state.h"

#include <string.h>

/* Initial-exec: the libraries are loaded early and this is small, and every call looks at it. */
static _Thread_local sim_thread this_thread __attribute__((tls_model("initial-exec")));

sim_thread *sim_this_thread(void)
{
    if (this_thread.epoch != sim.epoch) {
        memset(&this_thread, 0, sizeof this_thread);
        this_thread.epoch = sim.epoch;
    }
    return &this_thread;
}

void gmd_sim_thread(gmd_sim_thread_state *state)
{
    const sim_thread *thread = sim_this_thread();
    *state = (gmd_sim_thread_state){.device = thread->device,
                                    .last_error = (int)thread->last_error,
                                    .capture_mode = (int)thread->capture_mode};
}
