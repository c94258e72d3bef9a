/* pickle_literal.h - pickles written as Python literals, so that a test shows what a snapshot has.
 *
 *     {'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 4096}]]}
 *
 * Besides dicts, lists, tuples, integers, floats, 'strings', None, True and False: `&7 value` gives
 * a value the number 7 in the memo (containers before what is in them, as Python's pickler does),
 * `*7` is that value again. */
#ifndef GMD_PICKLE_LITERAL_H
#define GMD_PICKLE_LITERAL_H

#include "trace_test.h"

/* Adds the opcodes of the literal, which takes all of the text. */
void put_literal(pickle_text *p, const char *literal);

#endif
