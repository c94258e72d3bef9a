-- evaluate: record_truth.py's pattern of that name.
scenario {
  name = "evaluate",
  summary = "ResNet-50 evaluated, with or without no_grad",
  params = { { "no_gradients", false, "under no_grad" } },
}

model = nn.resnet50 {}
model:eval()
function pass()
  output = model(randn { 16, 3, 224, 224 })
  total = output:sum()
end
for i = 0, 3 do
  if no_gradients then
    no_grad(pass)
  else
    pass()
  end
  phase(i)
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. 0)
