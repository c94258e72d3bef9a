/* pickle_writer.h - writes plain data as a Python pickle of protocol 4, value by value as it comes.
 *
 * Opcodes: CPython's Lib/pickletools.py. Only such are used as pytorch.org/memory_viz reads
 * (unpickle in torch/utils/viz/MemoryViz.js): no frames are needed, and no opcode is new in
 * protocol 5. */
#ifndef GMD_PICKLE_WRITER_H
#define GMD_PICKLE_WRITER_H

#include "new_file.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pickle_writer {
    new_file *out;
    uint32_t memo_count;
} pickle_writer;

void pickle_begin(pickle_writer *w, new_file *out);
void pickle_end(pickle_writer *w);

void pickle_natural(pickle_writer *w, uint64_t value);
void pickle_integer(pickle_writer *w, int64_t value);
void pickle_real(pickle_writer *w, double value);
void pickle_bool(pickle_writer *w, bool value);

/* What is not UTF-8 is written as question marks: Python refuses the whole file otherwise. */
void pickle_text(pickle_writer *w, const char *text, size_t length);

/* Two values in between. */
void pickle_end_pair(pickle_writer *w);

/* Keys and values in between, by turns. */
void pickle_begin_dict(pickle_writer *w);
void pickle_end_dict(pickle_writer *w);

/* pickle_next before each item. */
typedef struct pickle_list {
    uint32_t count; /* of the batch: readers hold one on their stacks */
} pickle_list;
void pickle_begin_list(pickle_writer *w, pickle_list *list);
void pickle_next(pickle_writer *w, pickle_list *list);
void pickle_end_list(pickle_writer *w, pickle_list *list);

/* The value that was written last gets a number, by which it can be written again. */
uint32_t pickle_remember(pickle_writer *w);
void pickle_again(pickle_writer *w, uint32_t number);

#endif
