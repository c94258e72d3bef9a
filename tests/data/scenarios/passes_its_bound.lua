-- Takes twice what it says.
scenario { name = "passes_its_bound", summary = "takes twice what it says" }
bound { allocated = 4 * MiB }
x = empty { 4 * MiB, dtype = "uint8" }
y = empty { 4 * MiB, dtype = "uint8" }
