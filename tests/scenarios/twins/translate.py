"""Writes a PyTorch program as a script for `gmd run`.

A twin is one program: PyTorch executes its text, gmd runs what `script_of` makes of it. What a program may use is in
the tables below, each name once with its two spellings; anything else is refused (Untranslatable, with the line).

Globals of the program are globals of the script. In a function each name is assigned once and held to its end, as
Python holds a local. Dimensions and indices count from 0 here and from 1 there.
"""
import ast
import json

TYPES = {"torch.float32": "float32", "torch.float16": "float16", "torch.bfloat16": "bfloat16",
         "torch.float64": "float64", "torch.int64": "int64", "torch.uint8": "uint8"}
FORMATS = {"torch.channels_last": "channels_last"}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}
COMPARISONS = {ast.Gt: "gt", ast.GtE: "ge", ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}

# Functions and methods: the script's name, and what each argument is, in order and by name. v: a value, d: a dimension
# or several, i: an index, o: an order of dimensions, s: a size, and all that follow, t: a type, p: several types by name, l: a list,
# m: a mesh of ranks, c: an offload to the CPU, x: left out; "=NAME" behind it: as the
# script calls it.
# A name that begins with ":" is a method of the first argument, one that ends with "{}" takes a table.
FUNCTIONS = {
    "torch.randn": ("randn{}", "s", {"dtype": "t", "requires_grad": "v", "device": "x"}),
    "torch.rand": ("rand{}", "s", {"dtype": "t", "requires_grad": "v", "device": "x"}),
    "torch.zeros": ("zeros{}", "s", {"dtype": "t", "requires_grad": "v", "device": "x"}),
    "torch.ones": ("ones{}", "s", {"dtype": "t", "requires_grad": "v", "device": "x"}),
    "torch.empty": ("empty{}", "s", {"dtype": "t", "requires_grad": "v", "device": "x"}),
    "torch.randint": ("randint{}", "xxs", {"device": "x"}),
    "torch.arange": ("arange", "v", {"device": "x"}),
    "torch.randn_like": ("randn_like", "v", {}),
    "torch.zeros_like": ("zeros_like", "v", {}),
    "torch.relu": ("relu", "v", {}),
    "torch.tanh": ("tanh", "v", {}),
    "torch.sigmoid": ("sigmoid", "v", {}),
    "torch.exp": ("exp", "v", {}),
    "F.gelu": ("gelu", "v", {}),
    "F.silu": ("silu", "v", {}),
    "F.leaky_relu": ("leaky_relu", "v", {}),
    "F.dropout": ("dropout", "vv", {}),
    "F.softmax": ("softmax", "vd", {}),
    "F.log_softmax": ("log_softmax", "vd", {}),
    "torch.bmm": ("bmm", "vv", {}),
    "torch.matmul": ("matmul", "vv", {}),
    "torch.where": ("where", "vvv", {}),
    "torch.cat": ("cat", "vd", {}),
    "torch.stack": ("stack", "vd", {}),
    "F.cross_entropy": ("cross_entropy", "vv", {"reduction": "v", "ignore_index": "v"}),
    **{f"F.{name}": (name, "vv", {"reduction": "v"}) for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "nll_loss")},
    **{f"F.{name}": (name, "v", {}) for name in ("elu", "softplus", "mish", "hardswish", "relu6")},
    "F.interpolate": ("interpolate", "v", {"scale_factor": "v", "mode": "v"}),
    "F.normalize": ("normalize", "v", {"dim": "d=dimension"}),
    "F.pad": ("pad", "vv", {}),
    "copy.deepcopy": ("copy.deepcopy", "v", {}),
    "F.binary_cross_entropy_with_logits": ("binary_cross_entropy_with_logits", "vv", {"reduction": "v"}),
    "F.kl_div": ("kl_div", "vv", {"reduction": "v", "log_target": "v"}),
    "F.scaled_dot_product_attention": ("scaled_dot_product_attention", "vvv", {
        "attn_mask": "v", "is_causal": "v", "dropout_p": "v", "enable_gqa": "v"}),
    "attention": ("scaled_dot_product_attention", "vvv", {"is_causal": "v", "dropout_p": "v", "backend": "v"}),
    "F.embedding": (":embedding", "vv", {}),
    "nn.utils.clip_grad_norm_": ("clip_grad_norm", "vv", {}),
    "checkpoint": ("checkpoint", "vv", {}),
    "torch.autograd.grad": ("autograd.grad", "vl", {"create_graph": "v", "retain_graph": "v"}),
    "torch.cuda.Stream": ("cuda.Stream", "", {}),
    "torch.cuda.current_stream": ("cuda.current_stream", "", {}),
    "torch.cuda.CUDAGraph": ("cuda.CUDAGraph", "", {}),
    "init_process_group": ("dist.init_process_group{}", "", {"world_size": "v", "rank": "v"}),
    "fully_shard": ("fully_shard", "v", {"reshard_after_forward": "v", "mp_policy": "p",
                                         "mesh": "m", "offload_policy": "c"}),
    "torch.amp.GradScaler": ("GradScaler", "x", {}),
    "torch.cuda.reset_peak_memory_stats": ("cuda.reset_peak_memory_stats", "", {}),
    "torch.cuda.empty_cache": ("cuda.empty_cache", "", {}),
    "phase": ("phase", "v", {}),
    "Node": ("object", "", {}),
}
METHODS = {
    **{name: (name, "", {}) for name in (
        "relu", "tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "square", "abs", "sin", "cos", "detach", "contiguous",
        "clone", "half", "float", "relu_", "zero_", "item", "update", "eval", "train", "clear", "pop", "unshard",
        "reshard", "replay", "pool")},
    **{name: (name, "d", {"keepdim": "v"}) for name in ("sum", "mean", "max", "min", "argmax", "var", "std")},
    **{f"set_modules_to_{way}_prefetch": (f"set_modules_to_{way}_prefetch", "v", {}) for way in ("forward", "backward")},
    "flatten": ("flatten", "d", {}), "flip": ("flip", "d", {}), "roll": ("roll", "vd", {}), "norm": ("norm", "", {}),
    "logsumexp": ("logsumexp", "d", {}), "repeat": ("tile{}", "s", {}),
    **{name: (name, "d", {}) for name in ("softmax", "log_softmax", "cumsum", "unsqueeze", "squeeze", "unbind")},
    **{name: (name + "{}", "s", {}) for name in ("view", "reshape", "expand")},
    **{name: (name, "v", {}) for name in ("pow", "tril", "triu", "add_", "mul_", "fill_", "copy_", "requires_grad_",
                                          "record_stream", "wait_stream", "set_requires_gradient_sync", "append", "scale", "unscale_", "step")},
    "permute": ("permute{}", "o", {}),
    "transpose": ("transpose", "dd", {}),
    "narrow": ("narrow", "div", {}),
    "select": ("select", "di", {}),
    "chunk": ("chunk", "vd", {}),
    "split": ("split", "vd", {}),
    "index_select": ("index_select", "dv", {}),
    "gather": ("gather", "dv", {}),
    "scatter_add": ("scatter_add", "dvv", {}),
    "index_copy_": ("index_copy_", "dvv", {}),
    "masked_fill": ("masked_fill", "vv", {}),
    "masked_fill_": ("masked_fill_", "vv", {}),
    "clamp": ("clamp", "vv", {}),
    "sort": ("sort", "d", {"descending": "v"}),
    "topk": ("topk", "vd", {}),
    "backward": ("backward{}", "v", {"retain_graph": "v"}),
    "zero_grad": ("zero_grad{}", "", {"set_to_none": "v"}),
}

# Modules and optimizers: the script's name and its names for options, None for those that it always has. What is not
# here has the same name.
MODULES = {
    **{f"nn.{name}": (f"nn.{name}", {}) for name in (
        "Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "InstanceNorm2d", "Identity", "BatchNorm1d", "BatchNorm2d",
        "LayerNorm", "RMSNorm", "GroupNorm", "ReLU", "LeakyReLU", "Dropout", "Flatten", "MaxPool2d", "AvgPool2d",
        "AdaptiveAvgPool2d", "Upsample", "Embedding", "Tanh", "Sigmoid", "GELU", "SiLU", "LSTM", "GRU", "LSTMCell",
        "GRUCell", "Sequential")},
    **{f"nn.{name}": (f"nn.{name}", {"dim_feedforward": "hidden", "batch_first": None})
       for name in ("TransformerEncoderLayer", "TransformerDecoderLayer")},
    **{f"torch.optim.{name}": (f"optim.{name}", {}) for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")},
    **{name: (f"nn.{name}", {}) for name in ("Residual", "Checkpointed", "GPTBlock", "LlamaBlock", "MultiheadAttention",
                                             "DistributedDataParallel")},
    "ZeroRedundancyOptimizer": ("optim.ZeroRedundancyOptimizer", {}),
    **{name: (f"nn.{name}", {}) for name in ("resnet50", "gpt", "seq2seq")},
}
# What PyTorch takes in order and the script by name.
ORDER = {"nn.LSTM": ("input", "hidden", "layers"), "nn.GRU": ("input", "hidden", "layers"),
         "nn.TransformerEncoderLayer": ("", "", "hidden"), "nn.TransformerDecoderLayer": ("", "", "hidden"),
         "nn.Conv2d": ("", "", "", "stride", "padding"), "nn.Conv1d": ("", "", "", "stride", "padding"),
         "nn.ConvTranspose2d": ("", "", "", "stride", "padding", "output_padding"),
         "nn.MaxPool2d": ("", "stride", "padding"), "nn.AvgPool2d": ("", "stride", "padding")}


# Names of Lua's own that programs may use for something else.
TAKEN = ("table", "string", "type", "next", "select")


class Untranslatable(Exception):
    pass


def refuse(node, why):
    raise Untranslatable(f"line {getattr(node, 'lineno', '?')}: {why}: {ast.unparse(node)}")


def flattened(nodes):
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List)):
            yield from flattened(node.elts)
        else:
            yield node


def number_of(node):
    """The value of a whole number that is written out, else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number_of(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


class Translator:
    def __init__(self):
        self.lines, self.depth, self.modules, self.names = [], 0, set(), set()

    def put(self, line):
        self.lines.append("  " * self.depth + line)

    # --- expressions ------------------------------------------------------------------------------

    def value(self, node):
        visit = getattr(self, "value_" + type(node).__name__, None)
        return visit(node) if visit else refuse(node, "no such expression in scripts")

    def value_Constant(self, node):
        if node.value is None:
            return "nil"
        if isinstance(node.value, bool):
            return "true" if node.value else "false"
        return json.dumps(node.value) if isinstance(node.value, str) else repr(node.value)

    def value_Name(self, node):
        return node.id + "_" if node.id in TAKEN else node.id

    def value_Attribute(self, node):
        return f"{self.value(node.value)}.{node.attr}"

    def value_JoinedStr(self, node):
        return " .. ".join(self.value(part.value if isinstance(part, ast.FormattedValue) else part)
                           for part in node.values)

    def value_List(self, node):
        return "{ " + ", ".join(map(self.value, node.elts)) + " }" if node.elts else "list()"

    value_Tuple = value_List

    def value_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            return f"matmul({self.value(node.left)}, {self.value(node.right)})"
        operator = OPERATORS.get(type(node.op)) or refuse(node, "no such operator in scripts")
        return f"{self.operand(node.left)} {operator} {self.operand(node.right)}"

    def operand(self, node):
        return f"({self.value(node)})" if isinstance(node, ast.BinOp) else self.value(node)

    def value_UnaryOp(self, node):
        return f"-{self.operand(node.operand)}"

    def value_Compare(self, node):
        name = COMPARISONS.get(type(node.ops[0])) or refuse(node, "no such comparison in scripts")
        return f"{self.operand(node.left)}:{name}({self.value(node.comparators[0])})"

    def value_Subscript(self, node):
        index = number_of(node.slice)
        if index is not None and self.gives_list(node.value):
            return f"{self.value(node.value)}[{index + 1}]"
        if index is not None and index < 0 and isinstance(node.value, ast.Name):  # a part, from the end
            return f"{self.value(node.value)}[{index}]"
        if isinstance(node.value, ast.Call) and index == 0:  # the first of several results
            return f"({self.value(node.value)})"
        if index is not None and index >= 0 and not isinstance(node.value, ast.Call):
            return f"{self.value(node.value)}[{index + 1}]"
        return refuse(node, "no such index in scripts")

    def gives_list(self, node):
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
            node.func.attr in ("chunk", "split", "unbind"))

    def value_Call(self, node):
        name = ast.unparse(node.func)
        if name in MODULES:
            return self.module(node, name)
        if name in FUNCTIONS:
            return self.call(node, FUNCTIONS[name], node.args)
        if isinstance(node.func, ast.Attribute):
            return self.method(node)
        if name not in self.names:
            refuse(node, "no such function in scripts")
        return f"{self.value(node.func)}({', '.join(map(self.value, flattened(node.args)))})"

    def method(self, node):
        owner, name = node.func.value, node.func.attr
        if name in ("cuda", "parameters"):
            return self.value(owner)
        if name == "t":
            return f"{self.receiver(owner)}:transpose(1, 2)"
        if name == "bfloat16":
            return f'{self.receiver(owner)}:to("bfloat16")'
        if name == "to":
            return self.to(node, owner)
        if name == "add_param_group":
            return f"{self.receiver(owner)}:add_param_group {{ {', '.join(self.group(node.args[0]))} }}"
        if name in METHODS:
            return f"{self.receiver(owner)}:{self.call(node, METHODS[name], node.args)}"
        if name in self.names:  # a module that is an attribute
            return f"{self.value(node.func)}({', '.join(map(self.value, flattened(node.args)))})"
        return refuse(node, "no such method in scripts")

    def group(self, node):
        """The parameters of a group, and what is its own."""
        for key, value in zip(node.keys, node.values):
            if key.value == "params":
                yield from map(self.value, value.args)
            else:
                yield f"{key.value} = {self.value(value)}"

    def receiver(self, node):
        text = self.value(node)
        return f"({text})" if isinstance(node, (ast.BinOp, ast.UnaryOp)) else text

    def to(self, node, owner):
        if node.args:
            return f"{self.receiver(owner)}:to({self.argument(node.args[0], 't')})"
        form = FORMATS.get(ast.unparse(node.keywords[0].value)) or refuse(node, "no such format in scripts")
        if self.is_module(owner):
            return f"{self.receiver(owner)}:to_channels_last()"
        return f'{self.receiver(owner)}:to {{ memory_format = "{form}" }}'

    def is_module(self, node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            return self.is_module(node.func.value)
        return ast.unparse(node.func) in MODULES if isinstance(node, ast.Call) else (
            isinstance(node, ast.Name) and node.id in self.modules)

    def argument(self, node, kind):
        if kind == "t":
            return '"' + (TYPES.get(ast.unparse(node)) or refuse(node, "no such type in scripts")) + '"'
        if kind in "di":
            if isinstance(node, ast.Tuple):
                return "{ " + ", ".join(self.argument(each, kind) for each in node.elts) + " }"
            number = number_of(node)
            if number is None:
                refuse(node, "a dimension or index must be written out")
            return str(number + 1 if number >= 0 else number)
        return self.value(node)

    def call(self, node, rule, arguments):
        name, kinds, options = rule
        told, named = [], []
        for position, argument in enumerate(arguments):
            kind = kinds[min(position, len(kinds) - 1)] if kinds else refuse(node, "too many arguments")
            if position >= len(kinds) and kind not in "so":
                refuse(node, "too many arguments")
            if kind == "s":
                told += map(self.value, flattened([argument]))
            elif kind == "o":
                told += [self.argument(each, "d") for each in flattened([argument])]
            elif kind == "l":
                told.append("{ " + ", ".join(map(self.value, flattened([argument]))) + " }")
            elif kind != "x":
                told.append(self.argument(argument, kind))
        for keyword in node.keywords:
            kind, _, key = (options.get(keyword.arg) or refuse(node, f"no {keyword.arg} in scripts")).partition("=")
            if kind == "m":
                named.append("mesh = { " + ", ".join(map(self.value, keyword.value.args)) + " }")
            elif kind == "c":
                named.append("cpu_offload = true")
            elif kind == "p":
                named += [f"{each.arg} = {self.argument(each.value, 't')}" for each in keyword.value.keywords]
            elif kind != "x":
                named.append(f"{key or keyword.arg} = {self.argument(keyword.value, kind)}")
        if name.endswith("{}"):
            told = ", ".join(told + named)
            return f"{name[:-2]} {{ {told} }}" if told else f"{name[:-2]}()"
        told += ["{ " + ", ".join(named) + " }"] if named else []
        if name.startswith(":"):
            return f"{told[0]}{name}({', '.join(told[1:])})"
        return f"{name}({', '.join(told)})"

    def module(self, node, name):
        lua, renames = MODULES[name]
        order, told = ORDER.get(name, ()), []
        for position, argument in enumerate(node.args):
            if isinstance(argument, ast.Call) and ast.unparse(argument.func) == "params":
                told += map(self.value, argument.args)
                continue
            key = order[position] if position < len(order) else ""
            text = self.value(argument)
            told.append(f"{key} = {text}" if key else text)
        for keyword in node.keywords:
            key = renames.get(keyword.arg, keyword.arg)
            if keyword.arg == "activation":
                told.append("gelu = " + ("true" if keyword.value.value == "gelu" else "false"))
            elif keyword.arg == "optimizer_class":
                told.append(f'optimizer_class = "{keyword.value.attr}"')
            elif key:
                told.append(f"{key} = {self.value(keyword.value)}")
        if name in ("nn.LSTM", "nn.GRU") and not any(each.arg == "batch_first" for each in node.keywords):
            told.append("batch_first = false")
        return f"{lua} {{ {', '.join(told)} }}" if told else f"{lua}()"

    # --- statements -------------------------------------------------------------------------------

    def block(self, statements):
        self.depth += 1
        for statement in statements:
            self.statement(statement)
        self.depth -= 1

    def statement(self, node):
        visit = getattr(self, "put_" + type(node).__name__, None)
        return visit(node) if visit else refuse(node, "no such statement in scripts")

    def put_Expr(self, node):
        self.put(self.value(node.value))

    def put_Assign(self, node):
        targets = list(flattened(node.targets))
        names = ", ".join(map(self.value, targets))
        self.names.update(target.attr if isinstance(target, ast.Attribute) else target.id for target in targets)
        call = node.value
        if len(targets) == 1 and self.is_module(call) or isinstance(call, ast.Call) and ".cuda()" in ast.unparse(call):
            self.modules.add(names)
        if len(targets) > 1 and self.gives_list(call):
            self.bind("parts_", self.value(call))
            parts = [f"parts_[{k + 1}]" for k in range(len(targets))]
            for target, part in zip(targets, parts):
                self.bind(self.value(target), part)
            if self.local is None:
                self.put("parts_ = nil")
        elif isinstance(call, ast.Tuple):
            if self.local is not None:
                refuse(node, "one name at a time in functions")
            self.put(f"{names} = {', '.join(map(self.value, call.elts))}")
        else:
            self.bind(names, self.value(call))

    local = None  # in a function, the names that it has assigned

    def bind(self, names, text):
        if self.local is not None and "." not in names:
            for name in names.split(", "):
                if name in self.local:
                    raise Untranslatable(f"{name} is assigned twice in a function")
                self.local.add(name)
            self.put(f"local {names} <close> = hold({text})")
        else:
            self.put(f"{names} = {text}")

    def put_Delete(self, node):
        self.put(f"{', '.join(map(self.value, node.targets))} = {', '.join('nil' for _ in node.targets)}")

    def put_For(self, node):
        self.names.add(node.target.id)
        if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range":
            bounds = [self.value(each) for each in node.iter.args]
            first, end = bounds if len(bounds) == 2 else ("0", bounds[0])
            self.put(f"for {node.target.id} = {first}, {end} - 1 do")
        else:
            self.put(f"for _, {node.target.id} in ipairs({self.value(node.iter)}) do")
        self.block(node.body)
        self.put("end")

    def put_With(self, node):
        call = node.items[0].context_expr
        name, tail = ast.unparse(call.func), ""
        if name == "torch.no_grad":
            head = "no_grad("
        elif name == "torch.autocast":
            head = f"autocast({self.argument(call.keywords[0].value, 't')}, "
        elif name == "torch.cuda.stream":
            head = f"cuda.stream({self.value(call.args[0])}, "
        elif name == "torch.cuda.graph":
            head = f"cuda.graph({self.value(call.args[0])}, "
            tail = "".join(f", {{ {each.arg} = {self.value(each.value)} }}" for each in call.keywords)
        else:
            refuse(call, "no such block in scripts")
        self.put(head + "function()")
        self.block(node.body)
        self.put(f"end{tail})")

    def put_FunctionDef(self, node):
        names = [each.arg for each in node.args.args]
        self.put(f"function {node.name}({', '.join(names)})")
        self.names.update([node.name, *names])
        self.local, self.depth = set(names), self.depth + 1
        for name in names:
            self.put(f"local {name} <close> = hold({name})")
        self.depth -= 1
        self.block(node.body)
        self.local = None
        self.put("end")

    def put_Return(self, node):
        self.put(f"return {self.value(node.value)}")


def script_of(name, program):
    """The Lua text of a PyTorch program."""
    translator = Translator()
    translator.put(f'scenario {{ name = "{name}", summary = "the twin of a PyTorch program" }}')
    for statement in ast.parse(program).body:
        translator.statement(statement)
    return "\n".join(translator.lines) + "\n"
