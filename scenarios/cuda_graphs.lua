-- cuda_graphs: a server captures a CUDA graph for each batch size, each with memory of its own or not.
--
-- Shows    what is asked for while a graph is captured goes to a private pool, which stays for as long as
--          the graph: activations of all batch sizes are reserved beside each other, though one graph
--          runs at a time. With one pool for all, captured from the largest size down, the smaller ones
--          work in the memory of the largest; only their results are kept apart.
-- Params   leak: true gives each graph a pool of its own, false one to all; sizes: how many batch sizes,
--          in even steps; batch: the largest; layers, features: the model; iterations: rounds in which
--          all graphs run.
-- Bound    reserved memory: the model, inputs and results of all sizes, three more results of the largest
--          one, cuBLAS's workspaces of two streams, and what is left over in segments; the leaking
--          variant has two more results of every size.
-- Source   https://docs.pytorch.org/docs/stable/notes/cuda.html (graph memory management: sharing memory
--          across captures).
scenario {
  name = "cuda_graphs",
  summary = "CUDA graphs for many batch sizes: a private pool each, or one for all",
  tags = { "pressure", "streams" },
  params = {
    { "leak", true, "give each graph a pool of its own" },
    { "sizes", 8, "batch sizes", least = 1, most = 60 },
    { "batch", 4096, "samples of the largest batch", least = 1, most = 1048576 },
    { "layers", 8, "linear layers", least = 1, most = 256 },
    { "features", 2048, "width of each layer", least = 1, most = 65536 },
    { "iterations", 20, "rounds", least = 1, most = 100000 },
  },
}

function rows_of(k)
  return math.max(1, batch * (sizes + 1 - k) // sizes)
end

local _, weights = cuda.block_bytes(4 * features * features)
local _, result = cuda.block_bytes(4 * batch * features)
kept = 0 -- inputs and results
for k = 1, sizes do
  local _, block = cuda.block_bytes(4 * rows_of(k) * features)
  kept = kept + 2 * block
end
bound {
  reserved = layers * weights + kept + 3 * result + 66 * MiB + 50 * MiB,
  leaks = leak,
}

model = nn.Sequential {}
for _ = 1, layers do
  model:append(nn.Linear { features, features })
  model:append(nn.GELU())
end
side = cuda.Stream()
side:wait_stream(cuda.current_stream())
no_grad(function()
  cuda.stream(side, function()
    model(randn { batch, features })
  end)
end)
cuda.current_stream():wait_stream(side)
phase "warm"

inputs, outputs, graphs = list(), list(), list()
function capture(rows)
  x = randn { rows, features }
  graph = cuda.CUDAGraph()
  inputs:append(x)
  graphs:append(graph)
  local pool = not leak and #graphs > 1 and graphs[1]:pool() or nil
  no_grad(function()
    cuda.graph(graph, function()
      y = model(x)
    end, { pool = pool })
  end)
  outputs:append(y)
  x, y, graph = nil, nil, nil
end

for k = 1, sizes do
  capture(rows_of(k))
  phase("captured " .. rows_of(k))
end
for i = 0, iterations - 1 do
  for k = 1, sizes do
    inputs[k]:copy_(randn { rows_of(k), features })
    graphs[k]:replay()
  end
  phase(i)
end
