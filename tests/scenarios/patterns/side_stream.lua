-- side_stream: record_truth.py's pattern of that name.
scenario {
  name = "side_stream",
  summary = "batches prefetched on a side stream",
  params = { { "record", true, "their memory is recorded on the stream that uses it" } },
}

model = nn.Sequential { nn.Linear { 4096, 4096 }, nn.ReLU(), nn.Linear { 4096, 1000 } }
side = cuda.Stream()
for i = 0, 7 do
  cuda.stream(side, function()
    following = randn { 2048 + 256 * (i % 3), 4096 }
  end)
  if upcoming then
    cuda.current_stream():wait_stream(side)
    if record then
      upcoming:record_stream(cuda.current_stream())
    end
    model(upcoming):sum():backward()
  end
  upcoming = following
  phase(i)
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. 0)
