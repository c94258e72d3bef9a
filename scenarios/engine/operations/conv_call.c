#include "conv_call.h"

enum { GROUPS = 8 };

void conv_note(uint64_t number[CONV_NUMBERS], const struct conv *conv)
{
    for (int i = 0; i < 2; i++) {
        number[i] = (uint64_t)conv->kernel[i];
        number[2 + i] = (uint64_t)conv->stride[i];
        number[4 + i] = (uint64_t)conv->padding[i];
        number[6 + i] = (uint64_t)conv->dilation[i];
    }
    number[GROUPS] = (uint64_t)conv->groups;
}

struct conv conv_noted(const uint64_t number[CONV_NUMBERS])
{
    struct conv conv = {.groups = (int64_t)number[GROUPS]};
    for (int i = 0; i < 2; i++) {
        conv.kernel[i] = (int64_t)number[i];
        conv.stride[i] = (int64_t)number[2 + i];
        conv.padding[i] = (int64_t)number[4 + i];
        conv.dilation[i] = (int64_t)number[6 + i];
    }
    return conv;
}
