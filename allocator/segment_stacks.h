/* segment_stacks.h - who asked for the memory of a segment: the stack of the request that had it
 * allocated or mapped, by where it begins. A segment has no object of its own, and its first block
 * changes with every split. Zero-initialised is empty. */
#ifndef GMD_SEGMENT_STACKS_H
#define GMD_SEGMENT_STACKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct segment_stack {
    uint64_t address;
    uint32_t stack;
} segment_stack;

typedef struct segment_stacks { /* in ascending order */
    segment_stack *items;
    size_t count, capacity;
} segment_stacks;

/* Without host memory it is not remembered. */
void segment_stacks_add(segment_stacks *all, uint64_t address, uint32_t stack);
void segment_stacks_remove(segment_stacks *all, uint64_t address, uint64_t size);
uint32_t segment_stacks_at(const segment_stacks *all, uint64_t address); /* 0: not known */
void segment_stacks_release(segment_stacks *all);

#endif
