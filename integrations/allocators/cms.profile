gmd-profile 1
# CMS's GenericCachingAllocator (docs/known-allocators.md)
streams outlive_blocks    # a free records an event on the stream of the allocation
other_streams ordered
largest 1GiB              # more is an exception
failing_calls outside     # what an event could not be made for is lost
