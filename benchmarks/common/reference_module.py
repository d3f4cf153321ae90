"""The reference predictor (reference.py) as a PyTorch module, over the weights in the ONNX file."""

import numpy as np

from onnx_model import read_linears


def make_module(torch, path):
    """The reference predictor with the model's weights and PyTorch's fused functions."""
    functional, head = torch.nn.functional, 32

    class Reference(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, (dims, raw) in read_linears(path).items():
                if not name.endswith((".weight", ".bias")) or name.startswith("matrix."):
                    continue
                values = np.frombuffer(raw, np.float32).reshape([d for d in dims if d != "t"])
                values = values.T if dims[-1] == "t" else values
                self.register_buffer(name.replace(".", "_"), torch.tensor(np.ascontiguousarray(values)))
            self.layers = sum(1 for name, _ in self.named_buffers() if name.endswith("_f1_weight"))

        def linear(self, x, name):
            return functional.linear(x, getattr(self, name + "_weight"), getattr(self, name + "_bias"))

        def norm(self, x, name):
            weight = getattr(self, name + "_weight")
            return functional.layer_norm(x, weight.shape, weight, getattr(self, name + "_bias"))

        def mlp(self, x, first, second):
            return self.linear(functional.gelu(self.linear(x, first)), second)

        def attention(self, x, name, bias):
            def split(y):
                return y.view(y.shape[0], y.shape[1], -1, head).transpose(1, 2)

            q, k, v = (split(self.linear(x, f"{name}_{part}")) for part in "qkv")
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            return self.linear(mixed.transpose(1, 2).flatten(2), f"{name}_o")

        def forward(self, op_type, op_config, op_load, position, mask):
            kind = self.emb_weight.dtype
            x = functional.embedding(op_type, self.emb_weight)
            x = x + self.mlp(op_config.to(kind), "c1", "c2") + self.mlp(op_load.to(kind), "l1", "l2")
            x = self.norm(x, "n0") + self.linear(position.to(kind), "pos")
            shown = mask.to(kind)
            bias = ((1 - shown) * -1e9)[:, None, None, :]
            for i in range(self.layers):
                x = x + self.attention(self.norm(x, f"layers_{i}_n1"), f"layers_{i}_a", bias)
                x = x + self.mlp(self.norm(x, f"layers_{i}_n2"), f"layers_{i}_f1", f"layers_{i}_f2")
            pooled = (self.norm(x, "nf") * shown[..., None]).sum(1) / shown.sum(1, keepdim=True)
            return self.mlp(pooled, "h1", "h2").float()

    return Reference().eval()
