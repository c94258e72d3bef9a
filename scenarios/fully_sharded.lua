-- fully_sharded: a Llama-like decoder over several ranks with fully_shard (FSDP2), as one of them sees it.
--
-- Shows    each rank keeps its part of parameters, gradients and moments. What is gathered for a pass is
--          as large as the module that fully_shard() was called of: called of the model alone, all
--          parameters are there at once, beside the buffer that they are gathered in, and all gradients
--          beside the one that they are reduced in. Called of each part, only one or two parts are.
-- Params   leak: true shards the model as one, false part by part; ranks, rank: the process group, and
--          which of it this is; reshard: parts give up their gathered parameters after the forward pass
--          (false: ZeRO stage 2); batch, length: the sequences; vocabulary, groups (heads of keys and
--          values), shared (heads of queries for each), depth, hidden, layers: the model; iterations:
--          steps.
-- Bound    from the sharded model on: five times what the rank has of it (parameters, gradients, two
--          moments and a temporary of the step); or four times, with the largest part's parameters,
--          gradients and buffers; or three times, with these, what blocks keep, and the logits.
-- Source   https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html (apply it bottom-up);
--          https://github.com/facebookresearch/fairscale/issues/1050 (no less memory than with DDP:
--          modules were not wrapped for themselves).
scenario {
  name = "fully_sharded",
  summary = "Llama-like decoder sharded over ranks (FSDP2): as one module, or part by part",
  tags = { "pressure", "streams" },
  params = {
    { "leak", true, "shard the model as one module" },
    { "ranks", 4, "processes, one for each GPU", least = 2, most = 65536 },
    { "rank", 0, "which of them this is", least = 0, most = 65535 },
    { "reshard", true, "give gathered parameters up after the forward pass" },
    { "batch", 1, "sequences", least = 1, most = 4096 },
    { "length", 256, "tokens of a sequence", least = 2, most = 65536 },
    { "vocabulary", 16000, "tokens known", least = 2, most = 16777216 },
    { "groups", 4, "heads of keys and values", least = 1, most = 32 },
    { "shared", 4, "heads of queries for each of them", least = 1, most = 32 },
    { "depth", 64, "features of a head, a multiple of 8", least = 8, most = 256 },
    { "hidden", 2816, "width of the feed-forward layers", least = 1, most = 262144 },
    { "layers", 12, "blocks", least = 1, most = 256 },
    { "iterations", 4, "steps", least = 1, most = 100000 },
  },
}

assert(rank < ranks, "rank must be below ranks")
assert(depth % 8 == 0, "depth must be a multiple of 8")
heads = groups * shared
features = heads * depth

dist.init_process_group { world_size = ranks, rank = rank }

parts = list()
parts:append(nn.Embedding { vocabulary, features })
for _ = 1, layers do
  parts:append(nn.LlamaBlock { features, heads, groups = groups, hidden = hidden, length = length })
end
parts:append(nn.RMSNorm { features })
parts:append(nn.Linear { features, vocabulary, bias = false })
model = nn.Sequential {}
for _, part in ipairs(parts) do
  model:append(part)
end

if not leak then
  for _, part in ipairs(parts) do
    fully_shard(part, { reshard_after_forward = reshard, param_dtype = "bfloat16", reduce_dtype = "float32" })
  end
end
fully_shard(model, { param_dtype = "bfloat16", reduce_dtype = "float32" })
parts, part = nil, nil
optimizer = optim.AdamW { model, lr = 1e-4 }

count = batch * length
block = 2 * features * features + 2 * features * groups * depth + 3 * features * hidden + 2 * features
words = vocabulary * features
-- this rank's rows of a parameter, with what the allocator does not split off
function rows_of(rows, columns)
  return (cuda.block_bytes(4 * math.ceil(rows / ranks) * columns))
end
attention = 2 * rows_of(features, features) + 2 * rows_of(groups * depth, features)
feed_forward = 2 * rows_of(hidden, features) + rows_of(features, hidden)
state = layers * (attention + feed_forward + 2 * rows_of(features, 1)) + 2 * rows_of(vocabulary, features)
-- what a layer keeps, what one is at work with, and the logits: in 16 bits, and a loss and gradients
graph = 2 * count * layers * (12 * features + 5 * hidden) + 2 * count * (12 * features + 6 * hidden) + 8 * count * vocabulary
-- parameters and gradients of two parts in 16 bits, their buffers, and one to reduce in
gathered = 12 * math.max(words, block)
-- gradients grow as the graph goes
at_work = gathered + math.max(3 * state + graph, 4 * state)
bound { allocated = 1.02 * math.max(5 * state, at_work) + 90 * MiB, leaks = leak }

phase "start"
for i = 0, iterations - 1 do
  tokens, targets = randint { batch, length }, randint { batch * length }
  loss = cross_entropy(model(tokens):view { batch * length, vocabulary }, targets)
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
