#!/bin/sh
# with_torch.sh PROGRAM...: runs it with the libraries of GMD_TORCH_DIR in place of stand-ins; without that
# it is skipped, visibly (exit status 77).
if [ -z "${GMD_TORCH_DIR:-}" ]; then
    echo "skipped, no PyTorch: GMD_TORCH_DIR is not set"
    exit 77
fi
LD_LIBRARY_PATH=$GMD_SIM:$GMD_TORCH_DIR/lib exec "$@"
