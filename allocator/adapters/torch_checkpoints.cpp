#include "torch_checkpoints.h"

#include "torch_books.h"

#include "gmd_abi.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace
{

[[noreturn]] void refuse(const char *why)
{
    throw std::runtime_error("gmd_allocator: " + std::string(why));
}

// In place of c10::cuda::CUDACachingAllocator::AllocatorState: Python's binding asks for its type.
class pool_state
{
  public:
    pool_state(int device, pool_id id)
    {
        const uint64_t name[2] = {id.first, id.second};
        char message[300] = "";
        if (gmd_checkpoint_pool(device, name, &checkpoint_, message, sizeof message) != 0) {
            refuse(message);
        }
    }
    virtual ~pool_state()
    {
        gmd_drop_checkpoint(checkpoint_);
    }
    pool_state(const pool_state &) = delete;
    pool_state &operator=(const pool_state &) = delete;

    const gmd_checkpoint *checkpoint() const
    {
        return checkpoint_;
    }

  private:
    gmd_checkpoint *checkpoint_ = nullptr;
};

struct restored_block {
    void *ptr;
    size_t size;
    cudaStream_t stream;
    bool is_live;
};

struct collection {
    std::vector<restored_block> blocks;
    bool is_short = false; // of host memory
};

// From C: nothing may be thrown through it.
void collect(void *context, void *ptr, uint64_t size, cudaStream_t stream, int is_live)
{
    auto *all = static_cast<collection *>(context);
    try {
        all->blocks.push_back({ptr, size, stream, is_live != 0});
    } catch (...) {
        all->is_short = true;
    }
}

constexpr int8_t cuda_type = 1; // c10::DeviceType::CUDA

struct live_search {
    pool_id id;
    const std::unordered_set<void *> &expected;
    size_t count;
    bool is_other_found;
};

void note_live(void *context, const gmd_block_info *block)
{
    auto *search = static_cast<live_search *>(context);
    if (block->state == 1 && pool_id(block->pool_id[0], block->pool_id[1]) == search->id) {
        search->count++;
        search->is_other_found =
            search->is_other_found ||
            search->expected.count(reinterpret_cast<void *>(block->address)) == 0;
    }
}

} // namespace

std::shared_ptr<void> get_checkpoint_state(void *object, int8_t device, pool_id id)
{
    (void)object;
    return std::make_shared<pool_state>(device, id);
}

checkpoint_changes set_checkpoint_state(void *object, int8_t device, std::shared_ptr<void> state)
{
    const auto *kept = static_cast<pool_state *>(state.get());
    collection all;
    char message[300] = "";
    if (gmd_restore_pool(device, kept->checkpoint(), collect, &all, message, sizeof message) != 0) {
        refuse(message);
    }
    if (all.is_short) {
        throw std::bad_alloc();
    }
    checkpoint_changes changes;
    for (const restored_block &block : all.blocks) {
        if (block.is_live) {
            books_add(object, block.ptr, block.size, device, block.stream);
            changes.allocated.push_back(
                {block.ptr, {block.ptr, deleter_of(object)}, cuda_type, device});
        } else {
            books_remove(object, block.ptr);
            changes.freed.push_back(block.ptr);
        }
    }
    return changes;
}

bool check_live_blocks(void *object, int8_t device, pool_id id,
                       const std::unordered_set<void *> &expected)
{
    (void)object;
    if (holders_of_pool(device, id) == 0) {
        refuse("there is no such pool");
    }
    live_search search = {id, expected, 0, false};
    gmd_walk(device, note_live, &search);
    return !search.is_other_found && search.count == expected.size();
}
