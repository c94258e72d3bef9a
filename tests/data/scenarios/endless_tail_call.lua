scenario { name = "endless_tail_call", summary = "calls itself for ever and asks for nothing" }

function again()
  return again()
end
again()
