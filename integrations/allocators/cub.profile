gmd-profile 1
# cub::CachingDeviceAllocator (docs/known-allocators.md)
streams outlive_blocks    # a free records an event on the stream of the allocation
other_streams ordered     # DeviceFree knows no other stream
largest 4611686018427387904 # sizes past 2^63 never return
pending_errors outside    # cub::Debug takes one for its own, and clears it
failing_calls outside     # what an event could not be made for is lost
