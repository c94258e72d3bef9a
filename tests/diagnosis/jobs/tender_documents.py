"""Documents of tenders, classified with the Trainer of the transformers library."""
import torch
from torch.utils.data import Dataset
from transformers import RobertaConfig, RobertaForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from job import job

LENGTH = 192


class Tenders(Dataset):
    def __init__(self, count):
        self.words = torch.randint(5, 3000, (count, LENGTH))
        self.labels = torch.randint(8, (count,))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.labels[index]}


class Steps(TrainerCallback):
    """An iteration for each step of the trainer."""

    def __init__(self, run, count):
        self.steps = run.steps(count)

    def on_step_begin(self, args, state, control, **kwargs):
        next(self.steps, None)

    def on_train_end(self, args, state, control, **kwargs):
        next(self.steps, None)


def classifier():
    config = RobertaConfig(vocab_size=3000, hidden_size=256, num_hidden_layers=3, num_attention_heads=4,
                           intermediate_size=1024, max_position_embeddings=256, num_labels=8,
                           hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "eager"
    return RobertaForSequenceClassification(config)


def arguments(steps, **more):
    return TrainingArguments(output_dir="/tmp/tenders", max_steps=steps, per_device_train_batch_size=16,
                             report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True, **more)


class TrainerWithMaps(Trainer):
    """Looks at the attention of each batch."""

    numbers_only = False

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs, output_attentions=True)  # guilty in attention_of_each_batch
        if not hasattr(self, "maps"):
            self.maps = []
        if self.numbers_only:
            self.maps.append([attention.amax(-1).mean().item() for attention in outputs.attentions])
        else:
            self.maps.append(outputs.attentions)  # cause in attention_of_each_batch
        return (outputs.loss, outputs) if return_outputs else outputs.loss


@job("retained_graph")
def attention_of_each_batch(run):
    """A subclass of the Trainer keeps the attention maps of each training batch, as the model returned them, to plot
    them after the training. Fixed: one number for each layer."""
    trainer = TrainerWithMaps(model=classifier(), args=arguments(11), train_dataset=Tenders(400),
                              callbacks=[Steps(run, 11)])
    trainer.numbers_only = run.fixed
    trainer.train()
    assert len(trainer.maps) == 11


class HeldOutScores(TrainerCallback):
    """Scores the held-out documents after each step."""

    def __init__(self, documents, with_graph):
        self.documents = documents
        self.with_graph = with_graph
        self.scores = []

    def on_step_end(self, args, state, control, model=None, **kwargs):
        model.eval()
        with torch.set_grad_enabled(self.with_graph):
            logits = model(input_ids=self.documents).logits  # guilty in scores_in_a_callback
            self.scores.append(logits.softmax(1))  # cause in scores_in_a_callback
        model.train()


@job("eval_graph")
def scores_in_a_callback(run):
    """A callback of the Trainer scores held-out documents after each step, and nothing there turns gradients off; the
    curves of the scores are drawn at the end. Fixed: no_grad()."""
    held_out = HeldOutScores(torch.randint(5, 3000, (8, LENGTH), device=run.device), with_graph=not run.fixed)
    trainer = Trainer(model=classifier(), args=arguments(10), train_dataset=Tenders(300),
                      callbacks=[held_out, Steps(run, 10)])
    trainer.train()


@job("healthy")
def evaluated_by_the_trainer(run):
    """The Trainer evaluates every fourth step and accumulates the gradients of two batches for each."""
    trainer = Trainer(model=classifier(), args=arguments(12, eval_strategy="steps", eval_steps=4,
                                                         gradient_accumulation_steps=2),
                      train_dataset=Tenders(800), eval_dataset=Tenders(64), callbacks=[Steps(run, 12)])
    trainer.train()
