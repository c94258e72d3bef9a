/* checks.h - what a program checks of a verdict: its oracle, and of that only what the verdict's
 * kind and parties are about. */
#ifndef GMD_REPRODUCERS_CHECKS_H
#define GMD_REPRODUCERS_CHECKS_H

#include "fragments.h"
#include "reproducer.h"

/* Whether the program checks what this oracle finds: of one whose oracle is not known, all. */
bool checks_oracle(const gmd_reproducer *reproducer, const char *oracle);

/* Whether it makes the check of that name (checks.c lists them), or one of a group. */
bool checks_has(const gmd_reproducer *reproducer, const char *check);
bool checks_has_group(const gmd_reproducer *reproducer, const char *group);

/* A flag for each oracle, group and check. */
void checks_choose(const gmd_reproducer *reproducer, fragment_choice *choice);

#endif
