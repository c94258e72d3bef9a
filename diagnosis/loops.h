/* loops.h - what each iteration does: whether it has a backward pass, and how long that is. Where
 * no stacks show the thread of backward(), it is known by gradients: blocks of most sizes that
 * parameters have. */
#ifndef GMD_DIAGNOSIS_LOOPS_H
#define GMD_DIAGNOSIS_LOOPS_H

#include "gmd_facts.h"
#include "parameter_sizes.h"

typedef struct loops {
    uint32_t *backward_blocks; /* by iteration: allocated by the thread of backward(); where that is
                                  not known, blocks of sizes of parameters */
    uint32_t *gradient_blocks; /* by iteration: of sizes of parameters, where they are of most */
    uint32_t *allocated_blocks; /* by iteration */
    uint64_t *asked_bytes;      /* by iteration, of all requests */
    uint32_t trained_from;      /* the moment when backward() first frees something; GMD_NEVER */
} loops;

gmd_status loops_find(loops *found, const gmd_facts *facts, parameter_sizes *sizes,
                      gmd_error *error);
void loops_free(loops *found);

/* Whether the thread of backward() freed a block: a graph that was gone through had saved it. */
bool is_freed_by_backward(const gmd_facts *facts, const gmd_lifetime *lifetime);

/* Whether stacks show backward passes. */
bool loops_see_backward(const gmd_facts *facts);

/* Whether most iterations of the main loop, or of the other one, have a backward pass. */
bool loop_has_backward(const loops *found, const gmd_facts *facts, bool is_other);

/* Whether most of them have gradients of most sizes that parameters have. */
bool loop_has_gradients(const loops *found, const gmd_facts *facts, bool is_other);

/* Whether each backward pass takes longer than the one before: it goes through the graphs of all
 * iterations so far. */
bool backward_lengthens(const loops *found, const gmd_facts *facts);

/* By how many bytes an iteration asks for more than the one before it, where nearly all do: they
 * work on all that was kept so far. 0 where they do not. */
uint64_t loop_asks_for_more(const loops *found, const gmd_facts *facts, bool is_other);

#endif
