"""All twins by name. Needs no torch."""
import collections
import hashlib
import random

from draw_layers import FOURTH_LAYERS, LATER_LAYERS, LAYERS, layer
from draw_models import FOURTH_MODELS, LATER_MODELS, MODELS
from draw_operations import LATER_OPERATIONS, OPERATIONS, chain, operation
from draw_replayed import FOURTH_REPLAYED, LATER_REPLAYED, REPLAYED
from draw_sharded import FOURTH_SHARDED, LATER_SHARDED, SHARDED
from scenario_defaults import OTHER_SIZES, SCENARIOS
from translate import script_of

CHAINS, LATER_CHAINS, FOURTH_CHAINS = 30, 6, 10

# Scenarios whose figures are decided by more than their requests. NCCL's thread lets go of the first buckets, and it
# looks every 100 ms.
DECIDED = {"awaitable_cycle": "the collector", "closure_cycle": "the collector", "reference_cycle": "the collector",
           "ddp_buckets": "NCCL's thread"}

LATER, LAST, FOURTH = "later_", "last_", "fourth_"

# The third round is about what the second one, and twins that were known to be wrong, were mended by.
MENDED = ["embedding", "sdpa_cross", "sdpa", "matmul_transposed", "softmax_columns", "logsumexp", "normalize", "huber_loss",
          "nll_loss", "repeat"]
LAST_LAYERS = {"layer_norm": 3, "embedding": 3, "encoder_layer": 3, "decoder_layer": 2, "multihead": 1}
LAST_MODELS = {"encoder": 4, "residual_mlp": 2, "gpt": 3, "checkpointed": 1, "dqn": 1}
LAST_SHARDED = {"smaller_group": 1, "offload": 1, "replicas": 1, "prefetch": 1}

# The fourth round: every third operation, and layers, models, ranks and graphs of all kinds. It was drawn, and recorded,
# before what was held of the others was opened; all of it is held.
FOURTH_OPERATIONS = [*list(OPERATIONS)[1::3], *list(LATER_OPERATIONS)[::3]]

# `program` is PyTorch; `run` is what gmd runs instead of its translation: a scenario with its parameters.
Twin = collections.namedtuple("Twin", "name family program run")


def drawn(family, name, make):
    return Twin(name, family, make(random.Random(name)), None)


def drawn_round(prefix, operations, chains, layers, models, others):
    """The twins of one round; their names begin with the prefix."""
    twins = [drawn("operations", f"{prefix}operation_{name}", lambda draw, name=name: operation(name, draw))
             for name in operations]
    twins += [drawn("chains", f"{prefix}chain_{k}", chain) for k in range(chains)]
    for make, count in layers.items():
        twins += [drawn("layers", f"{prefix}layer_{make.__name__}_{k}", lambda draw, make=make: layer(make, draw))
                  for k in range(count)]
    for make, count in models.items():
        twins += [drawn("models", f"{prefix}model_{make.__name__}_{k}", make) for k in range(count)]
    for family, makers in others.items():
        for make, count in makers.items():
            twins += [drawn(family, f"{prefix}{make.__name__}_{k}", make) for k in range(count)]
    return twins


def all_twins():
    twins = drawn_round("", OPERATIONS, CHAINS, LAYERS, MODELS, {"sharded": SHARDED, "replayed": REPLAYED})
    twins += drawn_round(LATER, [*list(OPERATIONS)[::4], *LATER_OPERATIONS], LATER_CHAINS, LATER_LAYERS, LATER_MODELS,
                         {"sharded": LATER_SHARDED, "replayed": LATER_REPLAYED})
    of = lambda makers, counts: {make: counts[make.__name__] for make in makers if make.__name__ in counts}
    twins += drawn_round(LAST, MENDED, 4, of(LAYERS, LAST_LAYERS), of(LATER_MODELS, LAST_MODELS),
                         {"sharded": of(LATER_SHARDED, LAST_SHARDED)})
    twins += [Twin(f"{LAST}{run[0]}_{k}", "models", program, run) for k, (run, program) in enumerate(OTHER_SIZES)]
    twins += drawn_round(FOURTH, FOURTH_OPERATIONS, FOURTH_CHAINS, FOURTH_LAYERS, FOURTH_MODELS,
                         {"sharded": FOURTH_SHARDED, "replayed": FOURTH_REPLAYED})
    twins += [Twin("scenario_" + "_".join(run).replace("=", "_"), "scenarios", program, run) for run, program in SCENARIOS]
    return twins


def is_later(twin):
    """It is of the second round: recorded when the engine was ready for it, and looked at by nobody before its errors were
    in the table."""
    return twin.name.startswith(LATER)


def is_last(twin):
    """It is of the third round: nobody has looked at what is wrong there."""
    return twin.name.startswith(LAST)


def is_fourth(twin):
    """It is of the fourth round, all of which is held."""
    return twin.name.startswith(FOURTH)


def is_held(twin):
    """Half of all drawn twins are not looked at while the engine is worked on; scenarios have a table of their own."""
    return is_fourth(twin) or twin.family != "scenarios" and hashlib.sha256(twin.name.encode()).digest()[0] % 2 == 1


def fingerprint(twin):
    """Says whether a recording is of this program."""
    return hashlib.sha256(twin.program.encode()).hexdigest()[:12]


def script(twin):
    return script_of(twin.name, twin.program)
