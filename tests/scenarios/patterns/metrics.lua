-- metrics: record_truth.py's pattern of that name.
scenario {
  name = "metrics",
  summary = "losses or outputs kept",
  params = { { "keep", "loss", "loss, outputs, detached or item" } },
}

model = nn.Sequential {
  nn.Linear { 1024, 4096 }, nn.ReLU(), nn.Dropout(), nn.Linear { 4096, 4096 }, nn.GELU(),
  nn.LayerNorm { 4096 }, nn.Linear { 4096, 1000 },
}
optimizer = optim.Adam { model }
kept = list()
for i = 0, 5 do
  fresh_x = randn { 512, 1024 }
  fresh_y = randint { 512 }
  x, y = fresh_x, fresh_y
  fresh_x, fresh_y = nil, nil
  output = model(x)
  loss = cross_entropy(output, y)
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  if keep == "loss" then
    kept:append(loss)
  elseif keep == "outputs" then
    kept:append(output)
  elseif keep == "detached" then
    kept:append(loss:detach())
  end
  phase(i)
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
