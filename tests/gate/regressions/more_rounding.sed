# settings.c: large segments of 2 MiB more than they need.
/^uint64_t settings_segment_size/,/^}/ s/return round_up(block_size, SEGMENT_ROUND_BYTES);/return round_up(block_size, SEGMENT_ROUND_BYTES) + SEGMENT_ROUND_BYTES;/
