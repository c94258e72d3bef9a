scenario { name = "many_bounds", summary = "states more bounds than are checked" }

for i = 1, 65 do
    bound { allocated = i * GiB }
end
