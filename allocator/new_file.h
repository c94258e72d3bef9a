/* new_file.h - writes a file that appears under its name only when it is whole: a reader never sees
 * half of it, and when writing fails an older file of that name is still there. */
#ifndef GMD_NEW_FILE_H
#define GMD_NEW_FILE_H

#include "gmd_error.h"

#include <stddef.h>
#include <stdio.h>

typedef struct new_file {
    char path[4096], temporary[4096 + 32]; /* the latter empty: what is there is no plain file (a
                                              pipe, a terminal), and is written to directly */
    int descriptor;
    FILE *stream; /* of the caller's, instead of the descriptor; NULL: none */
    int failure;  /* errno of the first write that failed; 0: none did */
    size_t used;
    unsigned char buffer[65536];
} new_file;

/* Errors name the path. */
gmd_status new_file_open(new_file *f, const char *path, gmd_error *error);
/* What is put goes to a stream that is open already, and stays so: for those whose files are. */
void new_file_on_stream(new_file *f, FILE *stream);
void new_file_put(new_file *f, const void *bytes, size_t size);

/* Puts it in its place, or says why there is none; closes it either way. */
gmd_status new_file_finish(new_file *f, gmd_error *error);

static inline void new_file_put_byte(new_file *f, unsigned char byte)
{
    if (__builtin_expect(f->used == sizeof f->buffer, 0)) {
        new_file_put(f, &byte, 1);
    } else {
        f->buffer[f->used++] = byte;
    }
}

#endif
