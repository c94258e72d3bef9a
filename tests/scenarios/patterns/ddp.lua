-- ddp: record_truth.py's pattern of that name.
scenario {
  name = "ddp",
  summary = "DistributedDataParallel, gradients beside its buckets or as views of them",
  params = {
    { "views", false, "gradient_as_bucket_view" },
    { "bucket_cap_mb", 0, "MiB at which a bucket is full; 0: the default" },
    { "set_to_none", true, "zero_grad(set_to_none=)" },
    { "normalise", false, "BatchNorm1d behind each layer" },
    { "layers", 6, "linear layers", least = 1, most = 1024 },
    { "features", 1536, "of a layer", least = 1, most = 65536 },
    { "batch", 512, "rows", least = 1, most = 65536 },
    { "iterations", 4, "steps", least = 1, most = 1000 },
  },
}

body = nn.Sequential {}
for i = 1, layers do
  body:append(nn.Linear { features, features })
  if normalise then
    body:append(nn.BatchNorm1d { features })
  end
  body:append(nn.ReLU())
end
phase("model")
model = nn.DistributedDataParallel {
  body, bucket = bucket_cap_mb * MiB, gradient_as_bucket_view = views,
}
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }
phase("wrapped")
for i = 0, iterations - 1 do
  x = randn { batch, features }
  loss = model(x):square():mean()
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  phase(i .. ":step")
  if i < iterations - 1 then
    optimizer:zero_grad { set_to_none = set_to_none }
  end
end
parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
