// torch_observers.h - who watches requests inside PyTorch: the profiler (profile_memory=True) and
// the callbacks of torch.cuda._gpu_trace.
#ifndef GMD_TORCH_OBSERVERS_H
#define GMD_TORCH_OBSERVERS_H

#include <cstddef>

// A block was handed out, is about to be freed, or was refused. Cheap while nobody watches.
void tell_allocated(void *ptr, int device);
void tell_freed(void *ptr, int device);
void tell_refused(size_t size, int device);

#endif
