/* gmd_command.h - a command line for a person to copy: words are quoted for the shell where they
 * need it, and none is ever cut. */
#ifndef GMD_COMMAND_H
#define GMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gmd_command {
    char *text; /* the caller's; always a string */
    size_t size, length;
    bool is_cut; /* a word did not fit: the text is not to be run */
} gmd_command;

/* Begins with the words of `start` as they are: "gmd gate". */
gmd_command gmd_command_begin(char *text, size_t size, const char *start);
void gmd_command_word(gmd_command *command, const char *word);
/* "--conf WORD"; a value that is NULL or empty leaves both out. */
void gmd_command_option(gmd_command *command, const char *option, const char *value);
/* Words that are written for the shell already, a space before them; NULL or empty: nothing. */
void gmd_command_more(gmd_command *command, const char *words);
/* Where it was cut, the text becomes a comment that says so. */
void gmd_command_end(gmd_command *command);

#endif
