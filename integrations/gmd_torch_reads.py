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


def _is_read(func, place, computes):
    """Whether the operator reads this argument: not `out`, nor what fill_() fills."""
    arguments = func._schema.arguments
    written = place < len(arguments) and arguments[place].alias_info is not None and arguments[place].alias_info.is_write
    return not written or (computes and func._schema.name.partition("::")[2].endswith("_"))


def _span(tensor):
    """Bytes from its first to its last element."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride()))
    return (last + 1) * tensor.element_size()


class WatchReads(TorchDispatchMode):
    """Each operator's inputs are looked at before it, in the order of its stream."""

    def __init__(self, watch_read):
        super().__init__()
        self.watch_read = watch_read  # gmd_sanitizer_watch_read

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view:
            computes = _computes(func._schema.name.partition("::")[2])
            for place, argument in enumerate(args):
                if _is_read(func, place, computes):
                    for tensor in tree_iter(argument):
                        self._watch(tensor, computes)
        return func(*args, **(kwargs or {}))

    def _watch(self, tensor, computes):
        if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cuda and tensor.numel():
            stream = torch.cuda.current_stream(tensor.device).cuda_stream
            is_whole = _span(tensor) == tensor.numel() * tensor.element_size()
            self.watch_read(tensor.data_ptr(), _span(tensor), stream, int(computes and is_whole))
