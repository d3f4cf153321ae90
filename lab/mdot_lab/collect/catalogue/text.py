"""Token models: transformers built from configurations; decoders, mixtures, encoders and LSTMs implemented in models/."""

from __future__ import annotations

from mdot_lab.collect.architecture import SIZE, Architecture

BATCHES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
LARGE_BATCHES = (1, 2, 4, 8, 16, 32)
LENGTHS = (128, 512, 256)
LONG = (512, 1024, 2048)


def _bert(width, depth, heads, **more):
    return dict(hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads, intermediate_size=4 * width,
                vocab_size=30522, **more)


def _gpt2(width, depth, heads):
    return dict(n_embd=width, n_layer=depth, n_head=heads, vocab_size=50257, n_positions=2048)


def _llama(width, depth, heads, kv_heads, hidden, **more):
    return dict(hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads, num_key_value_heads=kv_heads,
                intermediate_size=hidden, vocab_size=32000, max_position_embeddings=2048, **more)


def _t5(width, depth, heads, hidden, gated):
    return dict(d_model=width, num_layers=depth, num_decoder_layers=depth, num_heads=heads, d_kv=64, d_ff=hidden,
                vocab_size=32128, feed_forward_proj="gated-gelu" if gated else "relu", decoder_start_token_id=0)


def _bart(width, depth, heads):
    return dict(d_model=width, encoder_layers=depth, decoder_layers=depth, encoder_attention_heads=heads,
                decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, vocab_size=50265)


# (name, family, class, task, lengths, batches, configuration)
TRANSFORMERS = (
    ("bert_mini", "bert", "Bert:ForMaskedLM", "tokens", LENGTHS, BATCHES, _bert(256, 4, 4)),
    ("bert_base", "bert", "Bert:ForMaskedLM", "tokens", LENGTHS, BATCHES, _bert(768, 12, 12)),
    ("bert_large", "bert", "Bert:ForSequenceClassification", "tokens", LENGTHS, BATCHES, _bert(1024, 24, 16)),
    ("distilbert", "bert", "DistilBert:ForSequenceClassification", "tokens", LENGTHS, BATCHES,
     dict(dim=768, n_layers=6, n_heads=12, hidden_dim=3072, vocab_size=30522)),
    ("electra_small", "bert", "Electra:ForSequenceClassification", "tokens", LENGTHS, BATCHES,
     _bert(256, 12, 4, embedding_size=128)),
    ("albert_base", "albert", "Albert:ForMaskedLM", "tokens", LENGTHS, BATCHES,
     {**_bert(768, 12, 12, embedding_size=128), "vocab_size": 30000}),
    ("mobilebert", "mobilebert", "MobileBert:ForMaskedLM", "tokens", LENGTHS, BATCHES, dict(vocab_size=30522)),
    ("convbert_small", "convbert", "ConvBert:ForSequenceClassification", "tokens", LENGTHS, BATCHES,
     _bert(256, 12, 4, embedding_size=128)),
    ("fnet_base", "fnet", "FNet:ForMaskedLM", "tokens", LENGTHS, BATCHES,
     dict(hidden_size=768, num_hidden_layers=12, intermediate_size=3072, vocab_size=32000)),
    ("gpt2_small", "gpt", "GPT2:LMHeadModel", "tokens", LONG, BATCHES, _gpt2(768, 12, 12)),
    ("gpt2_medium", "gpt", "GPT2:LMHeadModel", "tokens", LONG, LARGE_BATCHES, _gpt2(1024, 24, 16)),
    ("opt_125m", "opt", "OPT:ForCausalLM", "tokens", LONG, BATCHES,
     dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, ffn_dim=3072, vocab_size=50272)),
    ("opt_350m", "opt", "OPT:ForCausalLM", "tokens", LONG, LARGE_BATCHES,
     dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, ffn_dim=4096, vocab_size=50272)),
    ("pythia_160m", "gpt neox", "GPTNeoX:ForCausalLM", "tokens", LONG, BATCHES,
     dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, vocab_size=50304)),
    ("llama_160m", "llama", "Llama:ForCausalLM", "tokens", LONG, BATCHES, _llama(768, 12, 12, 12, 2048)),
    ("llama_1b", "llama", "Llama:ForCausalLM", "tokens", LONG, LARGE_BATCHES, _llama(2048, 16, 32, 8, 5632)),
    ("qwen3_300m", "qwen", "Qwen3:ForCausalLM", "tokens", LONG, LARGE_BATCHES,
     _llama(1024, 16, 16, 8, 3072, head_dim=64)),
    ("qwen2_100m", "qwen", "Qwen2:ForCausalLM", "tokens", LONG, BATCHES, _llama(640, 12, 10, 2, 2560)),
    ("t5_small", "t5", "T5:ForConditionalGeneration", "seq2seq", LENGTHS, BATCHES, _t5(512, 6, 8, 2048, False)),
    ("t5_base_gated", "t5", "T5:ForConditionalGeneration", "seq2seq", LENGTHS, BATCHES, _t5(768, 12, 12, 2048, True)),
    ("bart_base", "bart", "Bart:ForConditionalGeneration", "seq2seq", LENGTHS, BATCHES, _bart(768, 6, 12)),
    ("bart_large", "bart", "Bart:ForConditionalGeneration", "seq2seq", LENGTHS, LARGE_BATCHES, _bart(1024, 12, 16)),
)


def _decoder(**arguments):
    return dict(vocab_size=32000, length=SIZE, **arguments)


def _mixture(width, depth, heads, hidden, experts, chosen, expert_choice=False):
    return _decoder(width=width, depth=depth, heads=heads, kv_heads=heads, hidden=hidden, experts=experts,
                    chosen=chosen, expert_choice=expert_choice)


WRITTEN_OUT = (
    ("gpt_nano", "gpt", "decoder.gpt", "tokens", (128, 512), BATCHES, _decoder(width=256, depth=4, heads=4)),
    ("gpt_base", "gpt", "decoder.gpt", "tokens", LONG, BATCHES, _decoder(width=768, depth=12, heads=12)),
    ("llama_20m", "llama", "decoder.llama", "tokens", LONG, BATCHES,
     _decoder(width=320, depth=8, heads=5, kv_heads=5, hidden=864)),
    ("llama_350m", "llama", "decoder.llama", "tokens", LONG, LARGE_BATCHES,
     _decoder(width=1024, depth=24, heads=16, kv_heads=4, hidden=2816)),
    ("llama_wide", "llama", "decoder.llama", "tokens", LONG, LARGE_BATCHES,
     _decoder(width=4096, depth=2, heads=32, kv_heads=8, hidden=14336)),
    ("switch_8", "mixture", "decoder.mixture", "tokens", LENGTHS, BATCHES, _mixture(512, 6, 8, 1024, 8, 1)),
    ("mixture_8_top2", "mixture", "decoder.mixture", "tokens", LENGTHS, BATCHES, _mixture(768, 8, 12, 1536, 8, 2)),
    ("mixture_32_top2", "mixture", "decoder.mixture", "tokens", LENGTHS, BATCHES, _mixture(512, 8, 8, 512, 32, 2)),
    ("expert_choice_16", "mixture", "decoder.mixture", "tokens", LENGTHS, BATCHES,
     _mixture(768, 6, 12, 1024, 16, 2, expert_choice=True)),
    ("encoder_small", "torch transformer", "encoder.encoder", "tokens", LENGTHS, BATCHES,
     _decoder(width=384, depth=6, heads=6, hidden=1536)),
    ("encoder_pre_norm", "torch transformer", "encoder.encoder", "tokens", LENGTHS, BATCHES,
     _decoder(width=640, depth=10, heads=10, hidden=2560, norm_first=True)),
    ("translator_base", "torch transformer", "encoder.translator", "seq2seq", LENGTHS, BATCHES,
     _decoder(width=512, depth=6, heads=8, hidden=2048)),
    ("lstm_small", "lstm", "recurrent.language_model", "tokens", (64, 256), BATCHES,
     dict(cell="LSTM", width=256, depth=2, vocab_size=10000)),
    ("lstm_large", "lstm", "recurrent.language_model", "tokens", (64, 256), BATCHES,
     dict(cell="LSTM", width=1024, depth=3, vocab_size=33000)),
    ("bilstm", "lstm", "recurrent.language_model", "tokens", (64, 256), BATCHES,
     dict(cell="LSTM", width=512, depth=2, vocab_size=2000, bidirectional=True)),
    ("gru_medium", "gru", "recurrent.language_model", "tokens", (64, 256), BATCHES,
     dict(cell="GRU", width=640, depth=2, vocab_size=16000)),
)


def _rows(library: str, table) -> list[Architecture]:
    return [Architecture(name=f"{library}/{name}", family=family, library=library, builder=builder, task=task,
                         sizes=lengths, batches=batches, arguments=arguments)
            for name, family, builder, task, lengths, batches, arguments in table]


ROWS = (*_rows("transformers", TRANSFORMERS), *_rows("torch", WRITTEN_OUT))
