/* stack_frames.h - what a stack means in words. */
#ifndef GMD_STACK_FRAMES_H
#define GMD_STACK_FRAMES_H

#include <stddef.h>
#include <stdint.h>

typedef struct stack_frame {
    void *code; /* a return address, whose name is not looked up yet; NULL: the fields below are set
                 */
    const char *name, *file; /* valid during the call, not terminated */
    size_t name_length, file_length;
    uint64_t line; /* 0: not known */
} stack_frame;

/* Visits one frame of a stack; frames come the innermost first. */
typedef void stack_frame_fn(void *context, const stack_frame *frame);

/* Names a return address, which takes long: the loader searches a library's names one by one. */
void stacks_name_code(void *code, stack_frame_fn *visit, void *context);

/* The frames of text as a gmd_stack_source gives it, and of return addresses. */
void stacks_frames_of_text(const char *text, size_t length, stack_frame_fn *visit, void *context);
void stacks_frames_of_code(void *const *addresses, size_t count, stack_frame_fn *visit,
                           void *context);

#endif
