gmd-profile 1
# RMM's cuda_async_memory_resource (docs/known-allocators.md)
other_streams ordered
