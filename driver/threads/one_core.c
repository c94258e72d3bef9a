#define _GNU_SOURCE /* sched_getcpu, sched_setaffinity */
#include "gmd_one_core.h"

void one_core_begin(one_core_state *core)
{
    cpu_set_t this_core;
    int index = sched_getcpu();
    CPU_ZERO(&this_core);
    if (index >= 0 && index < CPU_SETSIZE) {
        CPU_SET((size_t)index, &this_core);
    }
    core->is_on = sched_getaffinity(0, sizeof core->before, &core->before) == 0 &&
                  sched_setaffinity(0, sizeof this_core, &this_core) == 0;
}

void one_core_end(const one_core_state *core)
{
    if (core->is_on) {
        sched_setaffinity(0, sizeof core->before, &core->before);
    }
}
