-- stream_buckets: gradients are copied into buckets that are made for each reduction, which a stream of
-- its own does.
--
-- leak: true frees a bucket as soon as its work is queued, after record_stream(): the allocator may not
-- reuse it before the device has done the work, and the host is steps ahead. false holds it until the
-- main stream waits: the same memory is reused at once.
scenario {
  name = "stream_buckets",
  summary = "gradient buckets on a communication stream: record_stream(), or held until it is waited for",
  tags = { "pressure", "streams" },
  params = {
    { "leak", true, "free buckets after record_stream()" },
    { "iterations", 24, "training steps", least = 1, most = 100000 },
    { "synchronize", 8, "steps that the host may be ahead", least = 1, most = 100000 },
    { "layers", 16, "linear layers", least = 1, most = 256 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "batch", 1024, "samples in a batch", least = 1, most = 1048576 },
    { "bucket", 26214400, "bytes of a bucket", least = 1048576 },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.ReLU()
end
model = nn.Sequential(parts)
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }
main, communication = cuda.current_stream(), cuda.Stream()

activation = 4 * batch * features
parameters = 4 * layers * (features + 1) * features
buckets = (parameters + bucket - 1) // bucket
-- parameters, gradients, momentum, a set of buckets; what is saved, and temporaries
bound {
  reserved = 1.1 * (3 * parameters + buckets * bucket + (layers + 8) * activation + 68 * MiB),
  leaks = leak,
}

function reduce_gradients()
  held = list()
  for k = 1, buckets do
    each = empty { math.min(bucket, parameters - (k - 1) * bucket) // 4 }
    each:use(20000) -- the gradients are copied into it
    communication:wait_stream(main)
    cuda.stream(communication, function()
      each:use(400000) -- all-reduce
    end)
    if leak then
      each:record_stream(communication)
      main:wait_stream(communication) -- before they are copied back
      each:use(20000)
    else
      held:append(each)
    end
  end
  each = nil
  if not leak then
    main:wait_stream(communication)
    for k = 1, buckets do
      held[k]:use(20000)
    end
  end
  held = nil
end

for i = 0, iterations - 1 do
  model(randn { batch, features }):square():mean():backward()
  reduce_gradients()
  optimizer:step()
  optimizer:zero_grad()
  if (i + 1) % synchronize == 0 then
    cuda.synchronize()
  end
  phase(i)
end
