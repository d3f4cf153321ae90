"""Image classifiers of torchvision and timm, by family. Image-to-image networks are in other.py."""

from __future__ import annotations

from mdot_lab.collect.architecture import SIZE, Architecture

BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)

# (family, models, sizes): networks for any resolution. A family follows its main block.
TORCHVISION = (
    ("plain", "alexnet vgg11 vgg16_bn", (224, 192)),
    ("resnet", "resnet18 resnet50 resnet101 wide_resnet50_2", (224, 160, 288)),
    ("resnext", "resnext50_32x4d", (224, 160)),
    ("densenet", "densenet121 densenet169", (224, 160)),
    ("squeezenet", "squeezenet1_1", (224, 320)),
    ("shufflenet", "shufflenet_v2_x0_5 shufflenet_v2_x1_5", (224, 160)),
    ("mobilenet", "mobilenet_v2 mobilenet_v3_small mobilenet_v3_large", (224, 160, 288)),
    ("efficientnet", "mnasnet1_0 efficientnet_b0 efficientnet_b3 efficientnet_v2_s", (224, 160, 288)),
    ("regnet", "regnet_x_800mf regnet_y_1_6gf regnet_y_8gf", (224, 160, 288)),
    ("convnext", "convnext_tiny convnext_base", (224, 160, 288)),
    ("swin", "swin_t swin_v2_t", (224, 256)),
)
TORCHVISION_FIXED = (
    ("vit", "vit_b_32 vit_b_16 vit_l_16", (224, 160, 288), {"image_size": SIZE}),
    ("maxvit", "maxvit_t", (224,), {}),
    ("inception", "googlenet inception_v3", (224, 299), {"aux_logits": False, "init_weights": True}),
)
TIMM = (
    ("resnet", "resnet26t resnet34d resnet152", (224, 160, 256)),
    ("resnext", "resnext26ts seresnext50_32x4d resnext101_32x8d", (224, 160)),
    ("resnet attention", "seresnet50 ecaresnet26t skresnet34 resnest26d resnest50d", (224, 192)),
    ("res2net", "res2net50_26w_4s res2next50", (224, 160)),
    ("darknet", "cspresnet50 cspdarknet53 cs3darknet_m darknet53", (256, 192)),
    ("dla", "dla34 dla60x dla102", (224, 160)),
    ("dpn", "dpn68b dpn92", (224, 160)),
    ("vovnet", "ese_vovnet19b_dw ese_vovnet39b", (224, 288)),
    ("hrnet", "hrnet_w18_small hrnet_w32", (224, 256)),
    ("inception", "inception_v4 inception_resnet_v2", (299, 224)),
    ("xception", "xception41 xception65", (299, 224)),
    ("mobilenet", "mobilenetv1_100 mobilenetv4_conv_medium", (224, 256)),
    ("ghostnet", "ghostnet_100 ghostnetv2_130", (224, 160)),
    ("mixnet", "mixnet_s mixnet_l tf_mixnet_m", (224, 160)),
    ("efficientnet", "efficientnet_b1 efficientnet_b4 efficientnetv2_rw_t efficientnet_lite0 fbnetc_100 spnasnet_100",
     (224, 160, 288)),
    ("rexnet", "rexnet_100 rexnet_200", (224, 160)),
    ("regnet", "regnetx_004 regnety_032 regnetz_b16", (224, 256)),
    ("nfnet", "nfnet_l0 eca_nfnet_l0 dm_nfnet_f0", (224, 192)),
    ("repvgg", "repvgg_a2 repvgg_b1 mobileone_s1", (224, 192)),
    ("hgnet", "hgnet_tiny hgnetv2_b2", (224, 288)),
    ("convnext", "convnext_atto convnextv2_nano convnextv2_tiny convnext_small", (224, 160, 288)),
    ("inception next", "inception_next_tiny inception_next_small", (224, 160)),
    ("rdnet", "rdnet_tiny", (224, 160)),
    ("starnet", "starnet_s2 starnet_s4", (224, 160)),
    ("poolformer", "poolformer_s12 poolformerv2_s24 caformer_s18 convformer_s18", (224, 160)),
    ("focalnet", "focalnet_tiny_srf focalnet_small_lrf", (224, 160)),
    ("pvt", "pvt_v2_b0 pvt_v2_b2", (224, 160)),
    ("edgenext", "edgenext_x_small edgenext_base", (256, 192)),
    ("fastvit", "fastvit_t8 fastvit_sa12 repvit_m1", (256, 192)),
    ("mobilevit", "mobilevit_xs mobilevitv2_100", (256, 192)),
    ("efficientvit", "efficientvit_b1 efficientvit_b2", (224, 160)),
    ("davit", "davit_tiny", (224, 160)),
    ("convmixer", "convmixer_768_32", (224, 160)),
)
TIMM_FIXED = (
    ("vit", "vit_tiny_patch16_224 vit_small_patch32_224 vit_base_patch16_224 vit_large_patch16_224 "
     "deit3_small_patch16_224",
     (224, 160, 288), {"img_size": SIZE}),
    ("vit", "vit_base_patch16_siglip_224", (224, 288), {"img_size": SIZE, "num_classes": 1000}),
    ("vit", "vit_small_patch14_reg4_dinov2", (224, 280), {"img_size": SIZE, "num_classes": 1000}),
    ("beit", "beit_base_patch16_224 eva02_small_patch14_224", (224,), {}),
    ("cait", "cait_xxs24_224 cait_s24_224", (224,), {}),
    ("xcit", "xcit_nano_12_p16_224 xcit_small_12_p16_224", (224, 160), {"img_size": SIZE}),
    ("swin", "swin_small_patch4_window7_224 swinv2_tiny_window8_256 swin_s3_tiny_224", (224, 256), {"img_size": SIZE}),
    ("twins", "twins_svt_small twins_pcpvt_small", (224,), {}),
    ("coat", "coat_lite_mini coat_lite_small", (224,), {}),
    ("crossvit", "crossvit_9_240 crossvit_18_240", (240,), {}),
    ("levit", "levit_128 levit_384 levit_conv_192", (224,), {}),
    ("efficientformer", "efficientformer_l1 efficientformerv2_s1", (224,), {}),
    ("maxvit", "coatnet_0_rw_224 maxvit_nano_rw_256 coatnext_nano_rw_224", (224, 256), {"img_size": SIZE}),
    ("gcvit", "gcvit_xxtiny gcvit_tiny", (224,), {}),
    ("mvit", "mvitv2_tiny", (224,), {}),
    ("hiera", "hiera_tiny_224", (224,), {}),
    ("nest", "nest_tiny", (224,), {}),
    ("tnt", "tnt_s_patch16_224", (224,), {}),
    ("pit", "pit_xs_224 pit_b_224", (224,), {}),
    ("visformer", "visformer_small", (224,), {}),
    ("convit", "convit_tiny convit_small", (224,), {}),
    ("volo", "volo_d1_224", (224,), {}),
    ("tiny vit", "tiny_vit_11m_224", (224,), {}),
    ("mixer", "mixer_s32_224 mixer_b16_224 gmlp_s16_224 resmlp_12_224", (224,), {}),
    ("attention in resnet", "botnet26t_256 halonet26t lambda_resnet26t", (256,), {}),
)


def _rows(library: str, table) -> list[Architecture]:
    return [Architecture(name=f"{library}/{model}", family=family, library=library, builder=model, task="image",
                         sizes=sizes, batches=BATCHES, arguments=dict(*arguments), channels_last=True)
            for family, models, sizes, *arguments in table for model in models.split()]


ROWS = (*_rows("torchvision", TORCHVISION), *_rows("torchvision", TORCHVISION_FIXED), *_rows("timm", TIMM),
        *_rows("timm", TIMM_FIXED))
