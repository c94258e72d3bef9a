/* gmd_terminal.h - what a person sees text on. */
#ifndef GMD_TERMINAL_H
#define GMD_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

typedef struct gmd_terminal {
    bool color;   /* ANSI colours */
    bool utf8;    /* block characters for the sparkline */
    bool quiet;   /* say nothing of what passed */
    bool verbose; /* say why something was skipped, one by one */
    int columns;  /* its width, where sentences and lists are wrapped; 0: each is one line */
} gmd_terminal;

/* What suits `out`: colour on a terminal unless NO_COLOR is set (https://no-color.org) or TERM is
 * "dumb"; text wrapped on a terminal, and lines as they are where programs look for them; UTF-8
 * when the user's locale has it. Reads the environment; changes no global state. */
gmd_terminal gmd_terminal_for(FILE *out, bool quiet);

#endif
