/* elf_file.h - whether a shared library is whole: the dynamic loader maps what the headers promise,
 * and a page that the file has not ends the process with SIGBUS. */
#ifndef GMD_ELF_FILE_H
#define GMD_ELF_FILE_H

#include <stdbool.h>

/* False: it is an ELF file of 64 bits whose segments end beyond it. What is no such file, or cannot
 * be read, is for the loader to refuse. */
bool elf_file_is_whole(const char *path);

#endif
