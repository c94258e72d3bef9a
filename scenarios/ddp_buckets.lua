-- ddp_buckets: gradients are reduced in DistributedDataParallel's buckets, and kept beside them.
--
-- Shows    DistributedDataParallel allocates its buckets once, as large as all gradients together, and
--          copies each gradient into its bucket as soon as it is there. By default the gradients stay
--          as well: one more set of them, in every step. With gradient_as_bucket_view they are views of
--          the buckets. The buckets are made anew before the second forward pass, in the order in which
--          gradients arrive, and reduced on a stream of their own.
-- Params   leak: true keeps gradients beside the buckets, false makes them views (PyTorch's
--          gradient_as_bucket_view); iterations; layers, features, batch: the model; bucket: bytes at
--          which a bucket is full, 0: 25 MiB after a first one of 1 MiB, as in PyTorch.
-- Bound    from the third step on (before it the buckets are made anew, while gradients are views of the
--          old one). fixed: parameters, momentum and buckets, what a step saves, and the gradients of a
--          layer; leak: a set of gradients more.
-- Source   https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
--          (gradient_as_bucket_view); torch/csrc/distributed/c10d/reducer.cpp.
scenario {
  name = "ddp_buckets",
  summary = "DistributedDataParallel: gradients beside its buckets, or as views of them",
  tags = { "pressure", "streams" },
  params = {
    { "leak", true, "keep gradients beside the buckets" },
    { "iterations", 24, "training steps", least = 1, most = 100000 },
    { "layers", 16, "linear layers", least = 1, most = 256 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "batch", 256, "samples in a batch", least = 1, most = 1048576 },
    { "bucket", 0, "bytes at which a bucket is full; 0: 25 MiB after a first one of 1 MiB" },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.ReLU()
end
model = nn.DistributedDataParallel {
  nn.Sequential(parts), bucket = bucket, gradient_as_bucket_view = not leak,
}
parts = nil
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }

layer = cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features)
activation = cuda.block_bytes(4 * batch * features)
-- Saved are the input and each layer's result. At the height of a pass there are five more of its size,
-- or, a layer later, three and the layer's gradients, before they are in the bucket.
bucket_bytes = bucket > 0 and bucket or 25 * MiB
unsplit = (layers * layer // bucket_bytes + 2) * MiB -- up to 1 MiB of each bucket's segment is not split off
needed = 3 * layers * layer + unsplit + math.max((layers + 6) * activation, (layers + 3) * activation + layer)

for i = 0, iterations - 1 do
  if i == 2 then
    bound { allocated = 1.02 * needed + 66 * MiB, leaks = leak }
  end
  model(randn { batch, features }):square():mean():backward()
  optimizer:step()
  optimizer:zero_grad { set_to_none = false }
  phase(i)
end
