# blocks.c: a freed block stays as it is beside free neighbours.
/^void blocks_release/,/^}/ s/= blocks_merge([^;]*);/= 0;/
