/* verify_open.c — opens what mdotc_verify compares: see verify_model.h. */
#include "base/suggest.h"
#include "base/text.h"
#include "compiler/verify_model.h"

#include <stdio.h>
#include <string.h>

static const char *const half_names[CO_HALF_TYPES] = {"bf16", "fp16"}; /* names of an image's precisions */

void co_verify_warn(const verification *v, const char *text)
{
    if (v->options->warning != NULL) v->options->warning(v->options->user, text);
}

bool co_verify_holds(const co_verify_inputs *provided, int64_t shortest, int64_t longest)
{
    return provided->length == 0 || (shortest <= provided->length && provided->length <= longest);
}

static mdot_status add_variant(verification *v, const char *path, const mdot_open_options *options, mdot_error *err)
{
    code_variant *variant = &v->variants[v->variant_count];
    BS_TRY(mdot_predictor_open(path, options, &variant->predictor, err));
    v->variant_count++;
    mdot_predictor_info opened = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(variant->predictor, &opened);
    bool on_cpu = strcmp(opened.device, "cpu") == 0, rounds = strcmp(opened.device_kernel_precision, "fp32") != 0;
    bool is_usual = on_cpu ? !rounds : options->kernel_precision == NULL;
    snprintf(variant->name, sizeof variant->name, "%s%s%s", on_cpu ? opened.cpu_isa : opened.device,
             is_usual ? "" : " ", is_usual ? "" : opened.device_kernel_precision);
    variant->half = -1;
    for (int h = 0; rounds && h < CO_HALF_TYPES; h++)
        if (strcmp(opened.device_kernel_precision, half_names[h]) == 0) variant->half = h;
    if (variant->half >= 0) v->rounds[variant->half] = true;
    return mdot_context_create(variant->predictor, &variant->context, err);
}

/* Most machines lack a suitable GPU, so a missing GPU only causes a warning about unverified code. */
static mdot_status add_gpu(verification *v, const char *path, const char *kernel_precision, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_open_options options = {.struct_size = sizeof options, .device = "cuda", .kernel_precision = kernel_precision};
    mdot_status status = add_variant(v, path, &options, &reason);
    if (status == MDOT_INCOMPATIBLE && kernel_precision != NULL) return MDOT_OK; /* code for other architectures */
    if (status != MDOT_DEVICE) {
        if (status != MDOT_OK && err != NULL) *err = reason;
        return status;
    }
    char text[sizeof reason.message + 64];
    snprintf(text, sizeof text, "the CUDA code is not verified: %s", reason.message);
    co_verify_warn(v, text);
    return MDOT_OK;
}

/* Verifies the predictor's own choice on the GPU, and then each further precision of the targets once. */
static mdot_status add_gpus(verification *v, const char *path, const mdot_predictor *opened, size_t first,
                            mdot_error *err)
{
    mdot_image_info image = MDOT_INIT(mdot_image_info), before = MDOT_INIT(mdot_image_info);
    mdot_status status = add_gpu(v, path, NULL, err);
    const char *done[CG_COMPUTES];
    size_t done_count = 0;
    for (size_t i = first; status == MDOT_OK && mdot_predictor_get_image(opened, i, &image) == MDOT_OK; i++) {
        bool is_other = i > first && strcmp(image.target, before.target) == 0;
        for (size_t k = 0; k < done_count; k++) is_other = is_other && strcmp(done[k], image.kernel_precision) != 0;
        before = image;
        if (!is_other || done_count == CG_COMPUTES) continue;
        done[done_count++] = image.kernel_precision;
        status = add_gpu(v, path, image.kernel_precision, err);
    }
    return status;
}

mdot_status co_verify_open(verification *v, const char *path, mdot_error *err)
{
    mdot_predictor *best;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_status status = mdot_predictor_open(
        path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cpu"}, &best, err);
    if (status != MDOT_OK) return status;
    mdot_predictor_get_info(best, &info);
    size_t i = 0;
    for (; status == MDOT_OK && i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        status = mdot_predictor_get_image(best, i, &image);
        if (status != MDOT_OK || strcmp(image.kind, "cpu") != 0) break;
        mdot_open_options options = {.struct_size = sizeof options,
                                     .cpu_isa = image.target,
                                     .device = "cpu",
                                     .kernel_precision = image.kernel_precision};
        status = add_variant(v, path, &options, err);
        if (status == MDOT_INCOMPATIBLE) status = MDOT_OK; /* an ISA level that this machine lacks */
    }
    if (status == MDOT_OK && i < info.image_count) status = add_gpus(v, path, best, i, err);
    mdot_predictor_close(best);
    return status;
}

static mdot_status no_entry(const mdot_predictor *predictor, const char *path, const char *name, mdot_error *err)
{
    char known[256];
    bs_join list;
    bs_join_begin(&list, known, sizeof known);
    bs_suggest suggestion = bs_suggest_begin(name);
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    for (size_t i = 0; mdot_predictor_get_entry(predictor, i, &entry) == MDOT_OK; i++) {
        bs_join_add(&list, "%s", entry.name);
        bs_suggest_add(&suggestion, entry.name);
    }
    return mdot_fail(err, MDOT_NOT_FOUND, "%s: unknown entry point \"%s\"%s; the artefact has %s", path, name,
                     bs_suggest_end(&suggestion).text, known);
}

mdot_status co_verify_find_entry(verification *v, const char *artefact_path, mdot_error *err)
{
    const mdot_predictor *predictor = v->variants[0].predictor;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    const char *name = v->options->entry != NULL ? v->options->entry : "predict";
    if (v->options->entry == NULL && info.entry_count == 1)
        v->entry = 0;
    else if (mdot_predictor_find_entry(predictor, name, &v->entry) != MDOT_OK)
        return no_entry(predictor, artefact_path, name, err);
    BS_TRY(mdot_predictor_get_entry(predictor, v->entry, &v->info));
    mdot_bucket_info last = MDOT_INIT(mdot_bucket_info);
    BS_TRY(mdot_predictor_get_bucket(predictor, v->entry, v->info.bucket_count - 1, &last));
    v->longest = last.max_length;
    return MDOT_OK;
}

static bool is_same_input(const mdot_tensor_info *info, const ir_value *input)
{
    const ir_type *type = &input->type;
    if (strcmp(info->name, input->name) != 0 || info->dtype != type->dtype || info->rank != type->rank) return false;
    for (int i = 0; i < type->rank; i++)
        if (info->dim[i].scale != type->dim[i].scale || info->dim[i].offset != type->dim[i].offset) return false;
    return true;
}

mdot_status co_verify_check_schema(const verification *v, const char *model_path, mdot_error *err)
{
    bool is_same =
        (size_t)v->graph->input_count == v->info.input_count && (size_t)v->graph->output_count == v->info.output_count;
    for (size_t i = 0; is_same && i < v->info.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_input(v->variants[0].predictor, v->entry, i, &info) != MDOT_OK) return MDOT_OUT_OF_RANGE;
        is_same = is_same_input(&info, v->graph->inputs[i]);
    }
    for (size_t i = 0; is_same && i < v->info.output_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        if (mdot_predictor_get_output(v->variants[0].predictor, v->entry, i, &info) != MDOT_OK)
            return MDOT_OUT_OF_RANGE;
        is_same = strcmp(info.name, v->graph->outputs[i]->name) == 0;
    }
    if (is_same) return MDOT_OK;
    return BS_INVALID(err, "%s: the inputs and outputs of the model differ from those of entry point \"%s\"",
                      model_path, v->info.name);
}

mdot_status co_verify_read_given(verification *v, ir_arena *arena, mdot_error *err)
{
    const mdotc_verify_options *o = v->options;
    v->provided_count = o->inputs != NULL ? 1 : o->job_count;
    if (v->provided_count == 0) return MDOT_OK;
    v->provided = IR_NEW_ARRAY(arena, co_verify_inputs, v->provided_count);
    if (v->provided == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(o->inputs != NULL ? co_verify_inputs_in_folder(v->graph, o->inputs, arena, v->provided, err)
                             : co_verify_inputs_of_jobs(v->graph, v->variants[0].context, v->entry, o->jobs,
                                                        o->configurations, o->job_count, arena, v->provided, err));
    for (size_t i = 0; i < v->provided_count; i++)
        if (!co_verify_holds(&v->provided[i], v->info.min_length, v->longest))
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "%s: the length %lld exceeds every bucket",
                             o->inputs != NULL ? o->inputs : v->info.name, (long long)v->provided[i].length);
    return MDOT_OK;
}
