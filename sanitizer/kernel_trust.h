/* kernel_trust.h - how far the words of a kernel's parameters can be trusted to be no left-overs.
 */
#ifndef KERNEL_TRUST_H
#define KERNEL_TRUST_H

#include <stdbool.h>
#include <stdint.h>

/* Which addresses in a kernel's parameters are used for certain; of others it may be that nobody
 * has ever initialised the word, and that it shows an earlier owner's address. */
typedef struct kernel_trust {
    bool in_pointers;    /* parameters of 8 bytes, and those that have nothing but addresses */
    bool in_structures;  /* every word */
    bool in_first_words; /* the first of a structure */
    uint32_t tail_words; /* bit i: of a structure the word that i + 1 words before its end */
} kernel_trust;

/* What is known of the kernel `name` which `library` (a file's name without folders) launches. */
kernel_trust kernel_trust_of(const char *library, const char *name);

#endif
