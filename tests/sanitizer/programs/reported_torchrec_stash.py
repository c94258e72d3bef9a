"""torchrec's memory stashing (github.com/meta-pytorch/torchrec/pull/4218, benchmark in pull/4231): embedding weights
are copied to pinned memory on a stream of their own and their storage is resized to nothing at once; the next tensors
of the dense model overwrite what is still being copied, and the weights come back as garbage or NaN."""

import torch

import case

ROWS, WIDTH = 8192, 128


class Stash:
    def __init__(self, mended):
        self.mended = mended
        self.d2h, self.h2d = torch.cuda.Stream(), torch.cuda.Stream()

    def stash(self, weights):
        """Returns what brings them back."""
        sizes = [w.untyped_storage().size() for w in weights]
        hosts = [torch.empty(w.shape).pin_memory() for w in weights]
        self.d2h.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.d2h):
            case.late()
            for weight, host in zip(weights, hosts):
                host.copy_(weight, non_blocking=True)  # guilty: use
        for weight in weights:
            if self.mended:
                weight.record_stream(self.d2h)
            weight.untyped_storage().resize_(0)  # guilty: free

        def restore():
            for weight, size in zip(weights, sizes):
                weight.untyped_storage().resize_(size)
            self.h2d.wait_stream(self.d2h)
            self.h2d.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.h2d):
                for weight, host in zip(weights, hosts):
                    weight.copy_(host, non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.h2d)

        return restore


def program(mended):
    weights = [torch.full((ROWS, WIDTH), 1.0 + i, device="cuda") for i in range(3)]  # guilty: alloc
    restore = Stash(mended).stash(weights)
    x = torch.full((ROWS, WIDTH), 0.01, device="cuda")
    hidden = [x + i for i in range(3)]  # the dense model's activations
    loss = sum(h.mean() for h in hidden)
    restore()
    means = [w.double().mean().item() for w in weights]
    return means == [1.0, 2.0, 3.0] and torch.isfinite(loss).item()


case.run(program)
