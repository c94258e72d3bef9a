/* contexts.h - the devices' primary contexts, and which one a thread uses. */
#ifndef GMD_SIM_CONTEXTS_H
#define GMD_SIM_CONTEXTS_H

#include "call_record.h"

/* Makes the device's primary context current on the thread. */
void device_use(sim_thread *thread, int device);
CUcontext context_of(int device);
/* The device of a context; -1, with misuse noted: it is none. */
int context_device(sim_call *call, CUcontext context);
/* CUDA_SUCCESS, or why a driver call that names this device cannot be made. */
int driver_check(sim_call *call, CUdevice device);

#endif
