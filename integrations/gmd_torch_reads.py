"""What PyTorch's operators read, told to gmd's sanitizer (docs/sanitizer.md): gmd_torch.install(sanitize="full")
uses it. Needs PyTorch."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

# Operators that compute with every value that they get. Others may be given memory that nobody wrote: copies
# of it, views, indices, saved values that a kernel has no use for.
_COMPUTING = frozenset("""
    abs add addbmm addcdiv addcmul addmm addmv all amax amin any argmax argmin baddbmm bmm clamp convolution cos
    cumsum div dot eq erf exp ge gelu gt isnan le lerp linalg_vector_norm log log_softmax _log_softmax lt max maximum
    mean min minimum mm mse_loss mul mv native_layer_norm ne neg norm pow reciprocal relu remainder rsqrt sigmoid
    silu sin _softmax softmax sqrt std sub sum tanh topk var _local_scalar_dense isfinite
""".split())


def _computes(name):
    """By the name of the operator: add, add_, _foreach_add_."""
    if name.startswith("_foreach_"):
        name = name[len("_foreach_"):]
    return name in _COMPUTING or name.rstrip("_") in _COMPUTING


_TOUCHING_NOTHING = frozenset("""
    alias detach empty is_same_size lift_fresh record_stream resize_ resize_as_ set_ set_data view _unsafe_view
    _reshape_alias _has_compatible_shallow_copy_type
""".split())


def _touches(func):
    """Whether the operator's work touches the memory of its arguments at all: torch.empty_like does not."""
    name = func._schema.name.partition("::")[2]
    return not (func.is_view or name in _TOUCHING_NOTHING or name.endswith("_like") or name.startswith(("new_", "sym_")))


def _is_read(func, place, computes):
    """Whether the operator reads this argument: not `out`, nor what fill_() fills."""
    arguments = func._schema.arguments
    written = place < len(arguments) and arguments[place].alias_info is not None and arguments[place].alias_info.is_write
    return not written or (computes and func._schema.name.partition("::")[2].endswith("_"))


def _span(tensor):
    """Bytes from its first to its last element."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride()))
    return (last + 1) * tensor.element_size()


def _is_watched(tensor):
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cuda and tensor.layout is torch.strided
            and tensor.numel() > 0)


class WatchReads(TorchDispatchMode):
    """Each operator's arguments are looked at before it, in the order of its stream."""

    def __init__(self, watch_use):
        super().__init__()
        self.watch_use = watch_use  # gmd_sanitizer_watch_use

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if _touches(func):
            computes = _computes(func._schema.name.partition("::")[2])
            for place, argument in enumerate((*args, *(kwargs or {}).values())):
                for tensor in tree_iter(argument):
                    if _is_watched(tensor):
                        self._watch(tensor, place < len(args) and _is_read(func, place, computes), computes)
        return func(*args, **(kwargs or {}))

    def _watch(self, tensor, is_read, computes):
        span = _span(tensor)
        is_whole = span == tensor.numel() * tensor.element_size()
        stream = torch.cuda.current_stream(tensor.device).cuda_stream
        self.watch_use(tensor.data_ptr(), span, stream, is_read, is_read and computes and is_whole)
