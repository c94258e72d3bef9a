"""A view for other libraries by __cuda_array_interface__ that does not keep its tensor."""

import cupy
import torch

import case

SIZE = 1 << 20


class Exported:
    def __init__(self, tensor, keep):
        self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__)
        self.tensor = tensor if keep else None


def program(mended):
    tensor = torch.zeros(SIZE, device="cuda")  # guilty: alloc
    view = cupy.asarray(Exported(tensor, keep=mended))
    del tensor  # guilty: free
    following = torch.ones(SIZE, device="cuda")
    view.fill(9.0)  # guilty: use
    return bool((following == 1.0).all())


case.run(program)
