"""Translation of recipes by T5 of the transformers library, trained with accelerate."""
import torch
from accelerate import Accelerator
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import T5Config, T5ForConditionalGeneration

from job import job

LANGUAGES = ("Catalan", "Finnish", "Korean", "Telugu")


def t5(width=256):
    config = T5Config(vocab_size=4000, d_model=width, d_kv=64, d_ff=4 * width, num_layers=2, num_heads=4,
                      dropout_rate=0.0, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)


def recipes(count, batch, length=80):
    data = TensorDataset(torch.randint(2, 4000, (count, length)), torch.randint(2, 4000, (count, length)))
    return DataLoader(data, batch_size=batch)


def prepared(batch, steps, **more):
    accelerator = Accelerator(**more)
    model = t5()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return accelerator, *accelerator.prepare(model, optimizer, recipes(batch * steps, batch))


class ConflictsOfLanguages:
    """The gradient that each language asked for, to find those that disagree."""

    def __init__(self, latest_only):
        self.latest_only = latest_only
        self.asked = {language: [] for language in LANGUAGES}

    def add(self, language, model):
        flat = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        if self.latest_only:
            self.asked[language].clear()
        self.asked[language].append(flat.half())  # guilty in languages_that_disagree

    def agreement(self):
        latest = [found[-1].float() for found in self.asked.values() if found]
        return F.cosine_similarity(latest[0], latest[-1], dim=0).item()


@job("gradient_accumulation")
def languages_that_disagree(run):
    """The gradients of each language are put aside in half precision, to see which languages disagree; only the latest
    are looked at, all are kept. Fixed: only the latest stay."""
    accelerator, model, optimizer, loader = prepared(16, 16)
    conflicts = ConflictsOfLanguages(latest_only=run.fixed)
    for step, (source, target) in zip(run.steps(16), loader):
        loss = model(input_ids=source, labels=target).loss
        accelerator.backward(loss)
        conflicts.add(LANGUAGES[step % len(LANGUAGES)], model)
        assert conflicts.agreement() <= 1.01
        optimizer.step()
        optimizer.zero_grad()


@job("retained_graph")
def auxiliary_loss_in_the_tracker(run):
    """Beside the loss that is trained, that of the encoder's own head is computed for the tracker. It is collected as
    a tensor, and no backward() goes through its graph. Fixed: item()."""
    accelerator, model, optimizer, loader = prepared(16, 12, gradient_accumulation_steps=2)
    tracked = {"loss": [], "auxiliary": []}
    for _, (source, target) in zip(run.steps(12), loader):
        with accelerator.accumulate(model):
            loss = model(input_ids=source, labels=target).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        encoded = model.encoder(input_ids=source).last_hidden_state  # guilty
        auxiliary = F.cross_entropy(model.lm_head(encoded).flatten(0, 1), target.flatten())  # guilty
        tracked["loss"].append(loss.item())
        tracked["auxiliary"].append(auxiliary.item() if run.fixed else auxiliary)  # cause


@job("healthy")
def four_recipes_at_a_time(run):
    """Gradients of four batches are accumulated for each step of the optimizer; recipes are translated greedily from
    time to time."""
    accelerator, model, optimizer, loader = prepared(8, 16, gradient_accumulation_steps=4)
    losses = []
    for step, (source, target) in zip(run.steps(16), loader):
        with accelerator.accumulate(model):
            loss = model(input_ids=source, labels=target).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        if step % 8 == 7:
            words = model.generate(input_ids=source[:4], max_new_tokens=6, do_sample=False)
            assert len(words) == 4
