/* validity.h - whether the simulated device agrees with itself: allocations, pages, mappings and
 * handles; streams, tickets and events; pools and graphs; and what each device counts of them.
 *
 * As in the allocator's validity.h: a call that ends checks all, each time as long as there is
 * little, and else as often as keeps the walks a constant part of the time. A reset checks what it
 * ends.
 *
 * What an allocator under test does wrong is misuse, which is reported; it breaks none of this.
 * The lock is held. Each function gives the sentence that does not hold; NULL: all does. */
#ifndef GMD_SIM_VALIDITY_H
#define GMD_SIM_VALIDITY_H

const char *sim_violation(void);
const char *sim_due_violation(void); /* when a check is due */

#endif
