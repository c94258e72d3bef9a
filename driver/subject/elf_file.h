/* elf_file.h - what a shared library's file says before, and after, it is loaded. */
#ifndef GMD_ELF_FILE_H
#define GMD_ELF_FILE_H

#include <stdbool.h>

/* What makes the file none that can be loaded here: "is no shared library ...", "is for ..."; NULL:
 * nothing does, or it cannot be read. */
const char *elf_file_unfit(const char *path);

/* False: it is an ELF file of 64 bits whose segments end beyond it: the dynamic loader maps what
 * the headers promise, and a page that the file has not ends the process with SIGBUS. What is no
 * such file, or cannot be read, is for the loader to refuse. */
bool elf_file_is_whole(const char *path);

/* Visits the names of all functions that the library exports, in the order of its table. They are
 * borrowed, and hold bytes of the file as they are. False: the file, or its table, cannot be
 * read. */
bool elf_file_each_function(const char *path, void (*visit)(void *context, const char *name),
                            void *context);

/* The same for the symbols that it needs from others. */
bool elf_file_each_needed(const char *path, void (*visit)(void *context, const char *name),
                          void *context);

#endif
