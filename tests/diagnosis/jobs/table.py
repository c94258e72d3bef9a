"""Which jobs are recorded, in which modes (record.py): a leaking job and its fixed variant each in one."""
from typing import NamedTuple


class Recording(NamedTuple):
    module: str
    job: str
    variant: str
    mode: str


# Module, job, mode of the leaking variant, mode of the fixed one; a paragraph for each class.
LEAKING = """
vision          frozen_backbone        -                    late
speech          speaker_network        late                 -
language        gradient_history       oom                  own
language        task_conflicts         middle               alloc
recommend       click_model            -                    ring
recommend       federated_rounds       annotations          -

vision          dice_history           -                    middle
vision          embedding_bank         late                 noframes
reinforcement   critic_log             own                  late
generative      running_quality        ring                 -
science         epoch_loss             metadata             annotations
libraries       hidden_states          -                    late

language        character_model        oom                  -
language        segment_memory         cpp                  late
reinforcement   recurrent_agent        late+own             -
science         streamed_filter        alloc                expandable
video           next_image             -                    metadata

vision          validation_loss        -                    own
vision          pseudo_labels          middle               -
language        perplexity             observer             late
generative      sampling               noframes             -
serving         reply_cache            late                 state
libraries       mobile_network         -                    own

language        parse_trees            -                    after
generative      own_gradient           late                 -
science         adapted_models         -                    cpp
science         simulations            ring                 -
serving         failed_requests        after                alloc

vision          feature_hooks          -                    late
language        remembered_bias        -                    own
generative      reversible_flow        late                 cpp
science         recomputed_steps       expandable           -

vision          progressive_resolution oom                  -
language        growing_sessions       -                    noframes
speech          features_then_train    state                -
recommend       table_shards           segments             own

vision          batch_size_finder      -                    -
language        long_prompt            own                  ring
generative      latents_first          late                 -
science         spectrum_then_fit      segments             alloc

pipeline        activation_offload     -                    -
pipeline        second_opinion         late                 noframes
pipeline        bucket_reduction       cpp                  late
pipeline        loader_ahead           own                  -

vision          vision_transformer     oom                  -
language        quadratic_attention    observer             alloc
science         optimizer_states       oom+noframes         late
science         largest_molecule       observer+cpp         -
"""

# Module, job, mode.
HEALTHY = """
vision          ema_weights            -
vision          contrastive_queue      late
vision          checkpointed_blocks    -
vision          mixed_precision        middle
vision          train_and_validate     -
vision          nearest_neighbours     own
vision          dataset_on_gpu         ring
vision          compiled_model         compile
language        micro_batches          late
language        two_steps_of_adamw     -
language        generation             -
language        truncated_backpropagation  metadata
language        low_rank_adapters      middle
language        clipped_gradients      annotations
language        length_curriculum      -
language        beam_search            noframes
reinforcement   replay_buffer          -
reinforcement   rollout_storage        alloc
reinforcement   actor_learner          late+ring
generative      adversarial_pair       -
generative      gradient_penalty       -
generative      diffusion_training     expandable
generative      autoencoder            after+own
generative      image_preview          late
science         second_derivatives     late
science         quasi_newton           -
science         meta_learning          cpp
science         sharpness_aware        -
science         graph_batches          ring
science         weight_average         -
science         recorded_graph         -
speech          keyword_spotting       after
speech          batch_warm_up          expandable
recommend       sparse_embeddings      -
recommend       near_the_limit         -
video           clip_windows           state
pipeline        prefetcher             -
pipeline        two_towers             late
serving         padded_requests        segments
serving         recent_replies         alloc
libraries       text_generation        -
"""


def recordings():
    rows = []
    for line in LEAKING.split("\n"):
        if line:
            module, job, leak, fixed = line.split()
            rows += [Recording(module, job, "leak", leak), Recording(module, job, "fixed", fixed)]
    for line in HEALTHY.split("\n"):
        if line:
            module, job, mode = line.split()
            rows.append(Recording(module, job, "healthy", mode))
    return rows


def classes():
    """The names of the jobs, class by class."""
    paragraphs = [*LEAKING.strip().split("\n\n"), HEALTHY.strip()]
    return [[line.split()[1] for line in paragraph.split("\n")] for paragraph in paragraphs]
