gmd-profile 1
# RMM's pool_memory_resource (docs/known-allocators.md)
other_streams ordered
largest 4611686018427387904 # sizes near 2^64 wrap
failing_calls outside       # without events streams share a list
