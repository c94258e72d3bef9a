// torch_checkpoints.h - PyTorch's questions about the state of a private pool, which
// torch.compile(mode="reduce-overhead") asks: its types by their layout in torch 2.11
// (c10/cuda/CUDACachingAllocator.h, c10/core/Allocator.h).
#ifndef GMD_TORCH_CHECKPOINTS_H
#define GMD_TORCH_CHECKPOINTS_H

#include "torch_pools.h"

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

struct tensor_memory { // at::DataPtr
    void *data;
    std::unique_ptr<void, void (*)(void *)> owner;
    int8_t device_type, device;
};

struct checkpoint_changes { // c10::cuda::CUDACachingAllocator::CheckpointDelta
    std::vector<void *> freed;
    std::vector<tensor_memory> allocated;
};

// Entries of the virtual table; like the others, they throw std::runtime_error.
std::shared_ptr<void> get_checkpoint_state(void *object, int8_t device, pool_id id);
checkpoint_changes set_checkpoint_state(void *object, int8_t device, std::shared_ptr<void> state);
bool check_live_blocks(void *object, int8_t device, pool_id id,
                       const std::unordered_set<void *> &expected);

#endif
