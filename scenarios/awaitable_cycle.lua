-- awaitable_cycle: a result that is awaited, with a callback that is a lambda on its own object.
--
-- Shows    an Awaitable holds its callback, the lambda holds the Awaitable: after wait() nobody needs it,
--          and its tensors (looked-up embeddings, gathered for one batch) stay until the cyclic collector
--          runs. A pipeline that prefetches makes a few of them in each step.
-- Params   leak: true is that, false gives the lambda what it needs instead of its object, so that
--          there is no cycle; iterations; tables: awaitables in a step; batch, features: the size of
--          each result; interval: gc.collect() after so many steps, the remedy without a change
--          of the code (0: never); objects: containers that the rest of the program creates in a step.
-- Count    an awaitable is 5 containers: itself, its tensor, the lambda, the tuple of its closure and the
--          cell in it. `objects` is an assumption.
-- Bound    fixed: the results of one step, before and after the callback; leak: the results of all steps
--          since the last collection.
-- Source   https://github.com/meta-pytorch/torchrec/pull/1226 (SequenceEmbeddingsAwaitable);
--          https://pytorch.org/blog/understanding-gpu-memory-2/ (finding reference cycles).
scenario {
  name = "awaitable_cycle",
  summary = "a lambda holds its own awaitable: results wait for the cyclic collector",
  tags = { "retention" },
  params = {
    { "leak", true, "the callback captures the awaitable" },
    { "iterations", 60, "steps", least = 1, most = 1000000 },
    { "tables", 4, "awaitables in a step", least = 1, most = 1000 },
    { "batch", 16384, "rows of a result", least = 1, most = 16777216 },
    { "features", 128, "columns of a result", least = 1, most = 1048576 },
    { "interval", 0, "steps between calls of gc.collect(); 0: none", most = 1000000 },
    { "objects", 40, "containers made by other code in a step", most = 1000000 },
  },
}

results = tables * cuda.block_bytes(4 * batch * features)
bound { allocated = 2 * results, leaks = leak }

function request()
  awaitable = object()
  awaitable.tensor = empty { batch, features }
  awaitable.wrapper = object() -- the tensor as Python sees it
  awaitable.callback = object() -- a lambda
  awaitable.callback.closure = list()
  awaitable.callback.closure:append(object()) -- a cell
  if leak then
    awaitable.callback.closure[1].contents = awaitable
  else
    awaitable.callback.closure[1].contents = awaitable.tensor
  end
  return awaitable
end

for i = 0, iterations - 1 do
  waiting = list()
  for _ = 1, tables do
    waiting:append(request())
  end
  for k = 1, tables do
    done = waiting[k]
    features_of_batch = done.tensor * 2 -- what the callback makes of it
  end
  done, awaitable, features_of_batch, waiting = nil, nil, nil, nil
  if interval > 0 and i % interval == 0 then
    gc.collect()
  end
  gc.background { objects }
  phase(i)
end
