gmd-profile 1
# RMM's arena_memory_resource (docs/known-allocators.md)
other_streams ordered
largest 4611686018427387904 # sizes near 2^64 wrap
