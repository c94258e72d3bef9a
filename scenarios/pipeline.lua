-- pipeline: one rank of a pipeline with virtual stages, whose activations' lifetimes interleave.
--
-- Shows    all forward passes first (GPipe) keeps the activations of every microbatch of every virtual
--          stage until the first backward pass; one forward, one backward (interleaved 1F1B) keeps those of
--          the warm-up. Received and sent tensors live from one rank's turn to the next.
-- Params   leak: true runs all forward passes first, false alternates after the warm-up; iterations;
--          ranks, stages (virtual, on this rank), microbatches (a multiple of ranks): the schedule;
--          layers, features, batch: a stage and a microbatch.
-- Bound    fixed: parameters with gradients, and the activations of the passes of the warm-up; leak: those
--          of stages * microbatches passes.
-- Source   https://arxiv.org/abs/2104.04473 (interleaved schedule);
--          https://pytorch.org/docs/stable/distributed.pipelining.html (ScheduleGPipe,
--          ScheduleInterleaved1F1B).
scenario {
  name = "pipeline",
  summary = "virtual pipeline stages: all forward passes first, or interleaved 1F1B",
  tags = { "pressure" },
  params = {
    { "leak", true, "all forward passes before the first backward pass" },
    { "iterations", 6, "training steps", least = 1, most = 100000 },
    { "ranks", 4, "ranks of the pipeline", least = 1, most = 1024 },
    { "stages", 3, "virtual stages on this rank", least = 1, most = 64 },
    { "microbatches", 16, "microbatches of a step", least = 1, most = 4096 },
    { "layers", 2, "linear layers of a stage", least = 1, most = 64 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "batch", 2048, "samples of a microbatch", least = 1, most = 1048576 },
  },
}
assert(microbatches % ranks == 0, "microbatches must be a multiple of ranks")

local chunks = {}
for s = 1, stages do
  local parts = {}
  for k = 1, layers do
    parts[2 * k - 1] = nn.Linear { features, features }
    parts[2 * k] = nn.ReLU()
  end
  chunks[s] = nn.Sequential(parts)
end
model = nn.Sequential(chunks) -- holds the stages
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }

passes = stages * microbatches
warm_up = (stages - 1) * ranks + 1 -- until the first microbatch has come through this rank
if leak then
  kept = passes
else
  kept = warm_up
end

activation = cuda.block_bytes(4 * batch * features)
gradient = cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features)
parameters = stages * layers * gradient -- of each layer as much as its gradient
-- a pass keeps its input, a result for each layer; two passes are at work; a layer's gradient is there
-- once more before it is added to that of the pass before
bound {
  allocated = 3 * parameters + gradient + ((warm_up + 2) * (layers + 1) + 4) * activation + 72 * MiB,
  leaks = leak,
}

-- Pass `turn` of the schedule as stage and microbatch: groups of `ranks` microbatches go through all
-- stages in turn, backwards in the opposite order of stages.
local function place(turn, backwards)
  local group, within = turn // (ranks * stages), turn % (ranks * stages)
  local stage = within // ranks + 1
  if backwards then
    stage = stages + 1 - stage
  end
  return stage, group * ranks + within % ranks + 1
end

local function forward(turn)
  local stage, microbatch = place(turn, false)
  local slot = (stage - 1) * microbatches + microbatch
  sent[slot] = chunks[stage](empty { batch, features, requires_grad = true })
end

local function backward(turn)
  local stage, microbatch = place(turn, true)
  local slot = (stage - 1) * microbatches + microbatch
  sent[slot]:backward(empty { batch, features })
  sent[slot] = nothing
end

nothing = object()
for i = 0, iterations - 1 do
  sent = list()
  for _ = 1, passes do
    sent:append(nothing)
  end
  for turn = 0, passes + kept - 1 do
    if turn < passes then
      forward(turn)
    end
    if turn >= kept then
      backward(turn - kept)
    end
  end
  phase(i .. ":backward")
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
