/* fragments.h - the parts that a generated program is put together from.
 *
 * A library (program.c.in, script.py.in) is text in fragments. Each begins with a line "MARK:
 * NAMES": the names that it defines. A fragment is part of a program where the program's own text
 * or another part has one of its names; nothing says by hand what needs what. "MARK=" asks for an
 * empty line before the next part. A line that ends with "MARK?FLAGS" is there where the flags hold
 * ("a|b&!c"), and "@KEY@" is replaced. MARK is "//" in C and "#" in Python. */
#ifndef GMD_REPRODUCERS_FRAGMENTS_H
#define GMD_REPRODUCERS_FRAGMENTS_H

#include <stdbool.h>
#include <stdio.h>

enum { FLAGS_MOST = 96, KEYS_MOST = 40 };

typedef struct fragment_choice {
    const char *flags[FLAGS_MOST]; /* those that hold */
    size_t flag_count;
    struct {
        const char *key, *value;
    } keys[KEYS_MOST];
    size_t key_count;
} fragment_choice;

void fragment_flag(fragment_choice *choice, const char *flag, bool holds);
void fragment_key(fragment_choice *choice, const char *key, const char *value);

/* The fragments that `body` needs, in the library's order. False: no host memory. */
bool fragments_write(const char *library, const char *mark, const fragment_choice *choice,
                     const char *body, FILE *out);

#endif
