// torch_pools.h - private pools in PyTorch's types: those of graphs, and of torch.cuda.MemPool.
#ifndef GMD_TORCH_POOLS_H
#define GMD_TORCH_POOLS_H

#include <utility>

using pool_id = std::pair<unsigned long long, unsigned long long>; // c10::MempoolId_t

// A pool that requests go to later is held from now on, as torch.cuda.MemPool does. Like the
// others, it throws std::runtime_error where that is not possible.
void hold_pool(int device, pool_id id);
void release_pool(int device, pool_id id);

// How often it is held.
int holders_of_pool(int device, pool_id id);

#endif
