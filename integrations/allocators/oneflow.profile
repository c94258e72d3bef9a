gmd-profile 1
# OneFlow's BinAllocator (docs/known-allocators.md)
streams outlive_allocator # an allocator belongs to a stream
other_streams ordered     # an allocator knows its own stream only
largest 4611686018427387904 # sizes near 2^64 wrap
pressure keeps            # ShrinkAllMem is for the caller to call
