/* gmd_assert.h - assertions: what must hold whatever the input is. Where one does not, gmd itself
 * or the reference allocator is wrong, and the process ends at once (abort) with one line on
 * standard error: place, function, the violated expression, and a sentence.
 *
 * There are three tiers; GMD_ASSERT_LEVEL, an option of CMake, says which are checked:
 *
 * - GMD_ASSERT, level 1 and up, which is every build: compares what is at hand.
 * - GMD_ASSERT_INTERNAL, level 2 and up: constant time, but too much for a hot path of a release.
 * - GMD_ASSERT_VALID, level 3: a function NAME_violation() walks a whole structure and says what
 *   does not hold.
 *
 * A check of a lower level is compiled, but never evaluated: conditions have no side effects.
 * NDEBUG changes nothing. What a file, a trace, a plugin or a caller of a public function can bring
 * about is no assertion but an error (gmd_error.h), or a reported misuse where the simulated device
 * sees it.
 *
 * Any thread; a signal handler, too. */
#ifndef GMD_ASSERT_H
#define GMD_ASSERT_H

#include <stddef.h>

#ifndef GMD_ASSERT_LEVEL
#error "GMD_ASSERT_LEVEL is not set: link the target gmd_options"
#endif

/* What the line on standard error begins with; programs know an assertion by it. */
#define GMD_ASSERT_PREFIX "gmd: assertion failed: "

typedef struct gmd_assertion {
    const char *file;
    int line;
    const char *expression;
    const char *text; /* a short sentence: what it means that this does not hold */
} gmd_assertion;

/* Writes the line and ends the process. Allocates nothing and takes no lock. */
__attribute__((noreturn, cold)) void gmd_assert_fail(const gmd_assertion *what,
                                                     const char *function);

static inline void gmd_assert_valid(const char *violation, const char *file, int line,
                                    const char *expression, const char *function)
{
    if (__builtin_expect(violation != NULL, 0)) {
        gmd_assert_fail(&(gmd_assertion){file, line, expression, violation}, function);
    }
}

#define GMD_ASSERT_CHECK(condition, expression, text)                                              \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            static const gmd_assertion failed_assertion = {__FILE__, __LINE__, expression, text};  \
            gmd_assert_fail(&failed_assertion, __func__);                                          \
        }                                                                                          \
    } while (0)

/* Names what the condition names, so that nothing is unused because of the level. */
#define GMD_ASSERT_SKIP(condition) ((void)(0 && (condition)))

#define GMD_ASSERT(condition, text) GMD_ASSERT_CHECK(condition, #condition, text)

#if GMD_ASSERT_LEVEL >= 2
#define GMD_ASSERT_INTERNAL(condition, text) GMD_ASSERT_CHECK(condition, #condition, text)
#else
#define GMD_ASSERT_INTERNAL(condition, text) GMD_ASSERT_SKIP(condition)
#endif

/* `violation` calls a function that walks a structure and gives the sentence that does not hold;
 * NULL: all does. */
#if GMD_ASSERT_LEVEL >= 3
#define GMD_ASSERT_VALID(violation)                                                                \
    gmd_assert_valid(violation, __FILE__, __LINE__, #violation, __func__)
#else
#define GMD_ASSERT_VALID(violation) GMD_ASSERT_SKIP(violation)
#endif

#endif
