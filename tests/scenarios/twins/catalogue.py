"""All twins by name. Needs no torch."""
import collections
import hashlib
import random

from draw_layers import LAYERS, layer
from draw_models import MODELS
from draw_operations import OPERATIONS, chain, operation
from draw_replayed import REPLAYED
from draw_sharded import SHARDED
from scenario_defaults import SCENARIOS
from translate import script_of

CHAINS = 30

# Scenarios whose figures are decided by more than their requests. NCCL's thread lets go of the first buckets, and it
# looks every 100 ms.
DECIDED = {"awaitable_cycle": "the collector", "closure_cycle": "the collector", "reference_cycle": "the collector",
           "ddp_buckets": "NCCL's thread"}

# `program` is PyTorch; `run` is what gmd runs instead of its translation: a scenario with its parameters.
Twin = collections.namedtuple("Twin", "name family program run")


def drawn(family, name, make):
    return Twin(name, family, make(random.Random(name)), None)


def all_twins():
    twins = [drawn("operations", f"operation_{name}", lambda draw, name=name: operation(name, draw)) for name in OPERATIONS]
    twins += [drawn("chains", f"chain_{k}", chain) for k in range(CHAINS)]
    for make, count in LAYERS.items():
        twins += [drawn("layers", f"layer_{make.__name__}_{k}", lambda draw, make=make: layer(make, draw)) for k in range(count)]
    for make, count in MODELS.items():
        twins += [drawn("models", f"model_{make.__name__}_{k}", make) for k in range(count)]
    for family, makers in (("sharded", SHARDED), ("replayed", REPLAYED)):
        for make, count in makers.items():
            twins += [drawn(family, f"{make.__name__}_{k}", make) for k in range(count)]
    twins += [Twin("scenario_" + "_".join(run).replace("=", "_"), "scenarios", program, run) for run, program in SCENARIOS]
    return twins


def is_held(twin):
    """Half of all drawn twins are not looked at while the engine is worked on; scenarios have a table of their own."""
    return twin.family != "scenarios" and hashlib.sha256(twin.name.encode()).digest()[0] % 2 == 1


def fingerprint(twin):
    """Says whether a recording is of this program."""
    return hashlib.sha256(twin.program.encode()).hexdigest()[:12]


def script(twin):
    return script_of(twin.name, twin.program)
