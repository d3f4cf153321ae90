"""Image-to-image networks, series, vectors and recommendations, all implemented in models/."""

from __future__ import annotations

from mdot_lab.collect.architecture import SIZE, Architecture

IMAGES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LATENTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
SERIES = (1, 4, 16, 32, 64, 128, 256, 512)
VECTORS = (1, 16, 64, 256, 1024, 4096, 16384, 65536)
CLICKS = (32, 128, 512, 2048, 4096, 8192, 16384, 32768)

# (name, family, builder, task, sizes, batches, arguments)
TABLE = (
    ("unet_16", "unet", "dense_image.unet", "segmentation", (256, 128, 384), IMAGES,
     dict(width=16, levels=5, classes=2)),
    ("unet_32", "unet", "dense_image.unet", "segmentation", (256, 128, 384), IMAGES,
     dict(width=32, levels=5, classes=21)),
    ("unet_64", "unet", "dense_image.unet", "segmentation", (256, 128, 384), IMAGES,
     dict(width=64, levels=5, classes=21)),
    ("autoencoder", "autoencoder", "dense_image.autoencoder", "reconstruction", (128, 256), IMAGES,
     dict(width=64, levels=4)),
    ("diffusion_cifar", "diffusion unet", "dense_image.diffusion_unet", "diffusion", (32, 64), LATENTS,
     dict(width=128, multipliers=[1, 2, 2, 2], attention_levels=1, channels=3)),
    ("diffusion_small", "diffusion unet", "dense_image.diffusion_unet", "diffusion", (32, 64), LATENTS,
     dict(width=64, multipliers=[1, 2, 4], attention_levels=1, channels=3)),
    ("diffusion_latent", "diffusion unet", "dense_image.diffusion_unet", "diffusion", (32, 64), LATENTS,
     dict(width=192, multipliers=[1, 2, 3, 4], attention_levels=2, channels=4)),
    ("dit_s2", "diffusion transformer", "dense_image.dit", "diffusion", (32, 48), LATENTS,
     dict(width=384, depth=12, heads=6, patch=2, channels=4, size=SIZE)),
    ("dit_b4", "diffusion transformer", "dense_image.dit", "diffusion", (32, 64), LATENTS,
     dict(width=768, depth=12, heads=12, patch=4, channels=4, size=SIZE)),
    ("dit_l4", "diffusion transformer", "dense_image.dit", "diffusion", (32, 64), LATENTS,
     dict(width=1024, depth=24, heads=16, patch=4, channels=4, size=SIZE)),
    ("lstm_forecast", "lstm", "recurrent.forecaster", "series", (96, 336), SERIES,
     dict(cell="LSTM", features=32, width=256, depth=2)),
    ("gru_forecast", "gru", "recurrent.forecaster", "series", (96, 336), SERIES,
     dict(cell="GRU", features=8, width=512, depth=3)),
    ("rnn_tanh", "rnn", "recurrent.forecaster", "series", (96, 336), SERIES,
     dict(cell="RNN", features=16, width=384, depth=2)),
    ("tcn_small", "temporal convolution", "recurrent.temporal_convolutions", "series", (256, 1024), SERIES,
     dict(features=16, width=64, depth=6)),
    ("tcn_large", "temporal convolution", "recurrent.temporal_convolutions", "series", (256, 1024), SERIES,
     dict(features=64, width=256, depth=8)),
    ("mlp_mnist", "mlp", "vector.mlp", "vector", (784, 3072), VECTORS,
     dict(features=SIZE, widths=[512, 256], classes=10)),
    ("mlp_deep", "mlp", "vector.mlp", "vector", (256, 1024), VECTORS,
     dict(features=SIZE, widths=[1024] * 8, classes=100)),
    ("mlp_wide", "mlp", "vector.mlp", "vector", (1024, 4096), VECTORS,
     dict(features=SIZE, widths=[8192, 8192], classes=1000)),
    ("mlp_tabular", "mlp", "vector.residual_mlp", "vector", (64, 512), VECTORS,
     dict(features=SIZE, width=384, depth=8, classes=10)),
    ("dlrm_small", "dlrm", "vector.dlrm", "recommendation", (10000, 100000), CLICKS,
     dict(rows=SIZE, width=16, bottom=[512, 256], top=[512, 256])),
    ("dlrm_large", "dlrm", "vector.dlrm", "recommendation", (10000, 100000), CLICKS,
     dict(rows=SIZE, width=128, bottom=[512, 256], top=[1024, 1024, 512, 256])),
    ("dcn_v2", "feature crossing", "vector.cross_network", "recommendation", (10000, 100000), CLICKS,
     dict(rows=SIZE, width=32, crosses=3, top=[1024, 512])),
    ("deep_fm", "feature crossing", "vector.deep_fm", "recommendation", (10000, 100000), CLICKS,
     dict(rows=SIZE, width=16, top=[400, 400, 400])),
    ("two_tower", "two towers", "vector.two_tower", "recommendation", (10000, 100000), CLICKS,
     dict(rows=SIZE, width=64, tower=[1024, 512, 128])),
)

NHWC_FAMILIES = {"unet", "autoencoder", "diffusion unet"}

ROWS = tuple(Architecture(name=f"torch/{name}", family=family, library="torch", builder=builder, task=task, sizes=sizes,
                          batches=batches, arguments=arguments, channels_last=family in NHWC_FAMILIES)
             for name, family, builder, task, sizes, batches, arguments in TABLE)
