/* conv_call.h - one call of cuDNN for a convolution. */
#ifndef GMD_CONV_CALL_H
#define GMD_CONV_CALL_H

#include "gmd_operations.h"

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRAD, CONV_WEIGHT_GRAD };

struct conv_call {
    enum conv_pass pass;
    struct conv conv;
    enum dtype dtype;
    struct shape input, weight, output;
};

#endif
