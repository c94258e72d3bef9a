"""TensorRT-LLM's overlapped attention prologue (github.com/NVIDIA/TensorRT-LLM/pull/15265): an auxiliary stream
precomputes tensors that the indexer's stream consumes. Events order the work, but nobody tells the allocator; a
tensor that was handed over is freed, and the auxiliary stream's next layer writes into it while it is read."""

import torch

import case

LAYERS, TOKENS, WIDTH = 4, 2048, 512


class Attention:
    def __init__(self, aux, indexer, mended):
        self.aux, self.indexer, self.mended = aux, indexer, mended

    def precompute_aux(self, hidden):
        weights = hidden * 2.0  # guilty: alloc
        return weights, self.aux.record_event()

    def forward(self, hidden):
        self.aux.wait_event(self.input_ready)
        with torch.cuda.stream(self.aux):
            weights, ready = self.precompute_aux(hidden)
        with torch.cuda.stream(self.indexer):
            self.indexer.wait_event(ready)
            if self.mended:
                weights.record_stream(self.indexer)
            return weights.sum()  # guilty: use, free


def program(mended):
    aux, indexer = torch.cuda.Stream(), torch.cuda.Stream()
    attention = Attention(aux, indexer, mended)
    inputs = [torch.full((TOKENS, WIDTH), 1.0 + layer, device="cuda") for layer in range(LAYERS)]
    attention.input_ready = torch.cuda.current_stream().record_event()
    with torch.cuda.stream(indexer):
        case.late()  # the indexer is the slower one
    outputs = []
    for hidden in inputs:
        outputs.append(attention.forward(hidden))  # guilty: free
    torch.cuda.synchronize()
    return [o.item() for o in outputs] == [2.0 * (1 + layer) * TOKENS * WIDTH for layer in range(LAYERS)]


case.run(program)
