// torch_pools.h - private pools in PyTorch's types: those of graphs, and of torch.cuda.MemPool.
#ifndef GMD_TORCH_POOLS_H
#define GMD_TORCH_POOLS_H

#include <memory>
#include <utility>

using pool_id = std::pair<unsigned long long, unsigned long long>; // c10::MempoolId_t

// A pool that requests go to later is held from now on, as torch.cuda.MemPool does. Like the
// others, it throws std::runtime_error where that is not possible.
void hold_pool(int device, pool_id id);
void release_pool(int device, pool_id id);

// What a MemPool was made with. `source`: PyTorch's allocator object that its segments come from; a
// pool that cannot have one is released. Names of options are those of gmd_set_pool_option.
void set_pool_source(int device, pool_id id, std::shared_ptr<void> source);
void set_pool_option(int device, pool_id id, const char *name, bool is_on);

// How often it is held.
int holders_of_pool(int device, pool_id id);

#endif
