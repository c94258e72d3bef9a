#!/bin/sh
# expect_torch.sh STATUS PATTERN COMMAND...: expect.sh with PyTorch's own allocator; where there is no
# PyTorch package (GMD_TORCH_DIR) the test is skipped, visibly (exit status 77).
if [ -z "${GMD_TORCH_DIR:-}" ]; then
    echo "skipped, no PyTorch: GMD_TORCH_DIR is not set"
    exit 77
fi
exec "$(dirname "$0")/../cli/expect.sh" "$@"
