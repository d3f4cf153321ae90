/* try_artefact.c — opens and runs a finished artefact before the compiler reports success. */
#include "compiler/compiler.h"

/* Runs an entry on zeros at the shortest length. Buckets share most code. */
static mdot_status run_entry(const mdot_predictor *predictor, mdot_context *context, size_t entry, mdot_error *err)
{
    mdot_entry_info info = MDOT_INIT(mdot_entry_info);
    mdot_status status = mdot_predictor_get_entry(predictor, entry, &info);
    if (status != MDOT_OK) return status;
    ir_arena *arena = ir_arena_create(0);
    co_tensor *inputs = arena != NULL ? IR_NEW_ARRAY(arena, co_tensor, info.input_count + 1) : NULL;
    co_tensor *outputs = arena != NULL ? IR_NEW_ARRAY(arena, co_tensor, info.output_count + 1) : NULL;
    if (inputs == NULL || outputs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    int64_t length = info.min_length;
    if (status == MDOT_OK)
        status = co_create_tensors(predictor, entry, length, true, info.input_count, arena, inputs, err);
    if (status == MDOT_OK)
        status = co_create_tensors(predictor, entry, length, false, info.output_count, arena, outputs, err);
    if (status == MDOT_OK)
        status = co_run(context, entry, inputs, info.input_count, outputs, info.output_count, arena, err);
    ir_arena_destroy(arena);
    return status;
}

mdot_status co_try_artefact(const char *path, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_error reason = {0};
    /* "" is the best level, whatever MDOT_CPU_ISA names. */
    mdot_open_options options = {.struct_size = sizeof options, .device = "cpu", .cpu_isa = ""};
    mdot_status status = mdot_predictor_open(path, &options, &predictor, &reason);
    if (status == MDOT_INCOMPATIBLE) return MDOT_OK; /* well-formed, but for other processors than this one */
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    if (status == MDOT_OK) status = mdot_predictor_get_info(predictor, &info);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &reason);
    for (size_t e = 0; status == MDOT_OK && e < info.entry_count; e++)
        status = run_entry(predictor, context, e, &reason);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    if (status == MDOT_OK) return MDOT_OK;
    const char *text = reason.message[0] != '\0' ? reason.message : mdot_status_text(status);
    if (status == MDOT_OUT_OF_MEMORY || status == MDOT_IO)
        return mdot_fail(err, status, "the compiled artefact cannot be tried: %s", text);
    return mdot_fail(err, status, "the compiled artefact is unusable, which is a fault of the compiler: %s", text);
}
