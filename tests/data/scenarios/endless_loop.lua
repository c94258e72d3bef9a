scenario { name = "endless_loop", summary = "goes round for ever and asks for nothing" }

while true do
  count = 1
end
