"""A language model (Llama of the transformers library) that helps the people of a call center."""
import functools
import gc
from collections import OrderedDict

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from job import job

WORDS = 8000


def llama(words=WORDS, layers=2, width=256):
    config = LlamaConfig(vocab_size=words, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096)
    return LlamaForCausalLM(config)


def call(length, device, count=1):
    return torch.randint(WORDS, (count, length), device=device)


@job("eval_graph")
def surprise_of_each_call(run):
    """How surprising each call is to the model, after it has been trained. The losses are collected as tensors, with
    gradients on. Fixed: inference_mode()."""
    model = llama(layers=3).to(run.device).eval()
    surprises = []
    with torch.inference_mode(run.fixed):
        for _ in run.steps(10):
            words = call(256, run.device, count=2)
            surprises.append(model(input_ids=words, labels=words, use_cache=False).loss)  # guilty
    assert len(surprises) == 10


def logits_of(model, words):
    return model(input_ids=words, use_cache=False).logits[0]  # guilty in logits_for_the_small_model


@job("fragmentation")
def logits_for_the_small_model(run):
    """Logits of calls are kept in half precision for a smaller model to learn from; calls come sorted by their length.
    What is kept of one settles where the logits of the call before were, and the next ones do not fit beside it. Fixed:
    what is kept goes to the CPU, and empty_cache() is called after each call."""
    model = llama().to(run.device).eval()
    kept = []
    with torch.no_grad():
        for step in run.steps(13):
            logits = logits_of(model, call(700 + 110 * step, run.device))
            kept.append(logits.cpu().half() if run.fixed else logits.half())  # guilty
            del logits
            if run.fixed:
                torch.cuda.empty_cache()


class Busy(Exception):
    """The order system does not answer."""


def with_retries(count, forget):
    """Tries so many times; the last error is told to the caller."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            last_error = None
            for attempt in range(count):
                try:
                    return function(*arguments, attempt)
                except Busy as error:
                    last_error = error  # cause in orders_that_fail
            text = f"no answer: {last_error}"
            if forget:
                last_error = None
            return text

        return wrapper

    return decorate


@job("reference_cycle")
def orders_that_fail(run):
    """The order system is asked up to two times. The error of the last time stays in a variable of the function that
    its traceback leads to, with the frames of the calls and their tensors. The collector is off while calls come in.
    Fixed: the variable is emptied."""
    model = llama(layers=4).to(run.device).eval()
    gc.disable()

    @with_retries(2, forget=run.fixed)
    def order(words, attempt):
        cache = model(input_ids=words, use_cache=True).past_key_values  # guilty
        spread = model.lm_head.weight[words[0]]  # guilty
        raise Busy(f"order system, attempt {attempt}, {cache.get_seq_length()} words, {spread.shape[1]} wide")

    with torch.no_grad():
        for _ in run.steps(12):
            answer = order(call(1800, run.device, count=3))
            assert answer.startswith("no answer")


class PrefixCaches:
    """Keys and values of the greetings of so many companies; the one that was not used for longest goes."""

    def __init__(self, model, most):
        self.model, self.most = model, most
        self.caches = OrderedDict()

    def of(self, company, device):
        if company not in self.caches:
            greeting = call(1500, device)
            self.caches[company] = self.model(input_ids=greeting, use_cache=True).past_key_values
            if len(self.caches) > self.most:
                self.caches.popitem(last=False)
        self.caches.move_to_end(company)
        return self.caches[company]


@job("healthy")
def greetings_of_companies(run):
    """The keys and values of greetings are kept for six companies at most."""
    model = llama(layers=3).to(run.device).eval()
    prefixes = PrefixCaches(model, most=6)
    companies = [0, 1, 2, 0, 3, 4, 5, 1, 6, 7, 2, 8, 3, 9, 0, 1]
    with torch.inference_mode():
        for step in run.steps(16):
            prefix = prefixes.of(companies[step % 16], run.device)
            assert prefix.get_seq_length() >= 1000
            answer = model.generate(call(40, run.device), max_new_tokens=6, do_sample=False, pad_token_id=0)
            assert answer.shape[1] >= 41


@job("healthy")
def call_that_goes_on(run):
    """One long call: its cache of keys and values grows with each thing that is said, until the call ends, and begins
    anew with the next one."""
    model = llama(layers=2).to(run.device).eval()
    cache = None
    with torch.inference_mode():
        for step in run.steps(18):
            if step % 9 == 0:
                cache = None
            result = model(input_ids=call(220, run.device), past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            assert result.logits[0, -1].argmax().item() < WORDS
            del result
