"""Models of transformers as plain modules: token ids in, logits out, cache off."""

from torch import nn


class LogitsOnly(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids, decoder_ids=None):
        if decoder_ids is None:
            outputs = self.model(input_ids=ids, use_cache=False) if self._takes_cache() else self.model(input_ids=ids)
        else:
            outputs = self.model(input_ids=ids, decoder_input_ids=decoder_ids, use_cache=False)
        return outputs.logits

    def _takes_cache(self) -> bool:
        # Encoders such as BERT have no cache to turn off, and some reject the argument.
        return hasattr(self.model.config, "use_cache") and self.model.can_generate()
