/* conformance_device.h - the device that the arguments of a conformance program name. */
#ifndef CONFORMANCE_DEVICE_H
#define CONFORMANCE_DEVICE_H

#include "gmd_runtime.h"

#include <stdio.h>
#include <string.h>

/* "cuda", or "sim" and the folder of its libraries. 0, or the exit status with which the program
 * ends: 77 where the machine has no such device. */
static inline int open_device(gmd_runtime *runtime, int argc, char **argv)
{
    int is_real = argc > 1 && strcmp(argv[1], "cuda") == 0;
    gmd_error error;
    if (gmd_runtime_open(runtime, is_real ? GMD_DEVICE_CUDA : GMD_DEVICE_SIM,
                         argc > 2 ? argv[2] : ".", &error) != GMD_OK) {
        fprintf(stderr, "%s\n", error.text);
        return is_real ? 77 : 3;
    }
    return 0;
}

#endif
