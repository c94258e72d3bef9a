/* gmd_one_core.h - threads of which one runs at a time stay on one core: each wake-up then costs a
 * switch there, and no interrupt to another core (on a virtual machine ten times as much). */
#ifndef GMD_ONE_CORE_H
#define GMD_ONE_CORE_H

#include <sched.h>
#include <stdbool.h>

typedef struct one_core_state {
    cpu_set_t before;
    bool is_on;
} one_core_state;

/* The calling thread, and those that it starts until one_core_end, stay on the core on which it
 * is now. Where the system refuses, they do not: nothing depends on it. */
void one_core_begin(one_core_state *core);
void one_core_end(const one_core_state *core);

#endif
