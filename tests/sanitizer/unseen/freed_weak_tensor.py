"""A tensor made of another's address, without owning it, as serving engines have for graphs' outputs."""

import torch

import case

SIZE = 1 << 20


class Address:
    def __init__(self, tensor):
        self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__)


def program(mended):
    hidden = torch.full((SIZE,), 3.0, device="cuda")  # guilty: alloc
    weak = torch.as_tensor(Address(hidden), device="cuda")
    if not mended:
        del hidden  # guilty: free
    following = torch.full((SIZE,), 4.0, device="cuda")
    result = weak * 2.0  # guilty: use
    return bool((result == 6.0).all()) and following[0].item() == 4.0


case.run(program)
