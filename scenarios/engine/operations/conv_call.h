/* conv_call.h - one call of cuDNN for a convolution. */
#ifndef GMD_CONV_CALL_H
#define GMD_CONV_CALL_H

#include "gmd_layout.h"
#include "gmd_operations.h"

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRAD, CONV_WEIGHT_GRAD };

struct conv_call {
    enum conv_pass pass;
    struct conv conv;
    enum dtype dtype;
    struct shape input, weight, output;
    enum memory_format format;
};

/* The window as the first CONV_NUMBERS numbers of a recipe, and back (conv_call.c). */
enum { CONV_NUMBERS = 9 };
void conv_note(uint64_t number[CONV_NUMBERS], const struct conv *conv);
struct conv conv_noted(const uint64_t number[CONV_NUMBERS]);

#endif
