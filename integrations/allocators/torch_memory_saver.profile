gmd-profile 1
# torch_memory_saver's pluggable allocator (docs/known-allocators.md)
other_streams ordered
failing_calls outside     # any call that fails ends the process
