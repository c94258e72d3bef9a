gmd-profile 1
# vLLM's cumem allocator (docs/known-allocators.md)
zero_bytes outside        # PyTorch asks for no segment of 0 bytes
largest 4611686018427387904
other_streams ordered     # a free waits for the block's device
failing_calls outside     # what a failed call left is not taken back
