#include "torch_segment.h"

#include <stdexcept>

namespace
{

struct base_search {
    uint64_t address;
    gmd_block_info found; // segment_size 0: not yet
};

void note_segment(void *context, const gmd_block_info *block)
{
    auto *search = static_cast<base_search *>(context);
    if (search->address - block->segment_address < block->segment_size) {
        search->found = *block;
    }
}

} // namespace

gmd_block_info segment_of(const void *ptr)
{
    base_search search = {reinterpret_cast<uintptr_t>(ptr), {}};
    for (int device = 0;
         search.found.segment_size == 0 && gmd_walk(device, note_segment, &search) == 0; device++) {
    }
    if (search.found.segment_size == 0) {
        throw std::runtime_error("gmd_allocator: the pointer lies in none of its segments");
    }
    return search.found;
}
