/* text_turn.h - words of a repeat that end with the number of the turn, which is another one in
 * each. */
#ifndef GMD_TRACE_TEXT_TURN_H
#define GMD_TRACE_TEXT_TURN_H

#include "arena.h"
#include "gmd_names.h"

typedef struct text_token { /* points into the text */
    const char *text;
    size_t length; /* 0: the end of the line */
} text_token;

enum { TEXT_EXPANDED = 8 }; /* words of a line, at most */

typedef struct text_words {
    bool is_in_repeat;
    size_t turn; /* from 0 */
    char expanded[TEXT_EXPANDED][2 * GMD_NAME_BYTES];
    unsigned expanded_count;
    memory_arena names; /* of words that were expanded */
} text_words;

/* The word of this turn, where it has a number of the turn in it. It lives as long as the line. */
text_token text_expand(text_words *words, text_token t);
/* A name that lives until the words are freed, or as long as the text; NULL: no host memory. */
const char *text_keep_name(text_words *words, text_token t);
void text_free_words(text_words *words);

#endif
