/* artefact.c — plans → predictor.mdot: the code generator's steps in order. */
#include "codegen/artefact.h"

#include "codegen/cpu/cpu.h"

#include <stdlib.h>

mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err)
{
    cg_pool weights = {0}, table = {0};
    cu_images images = {0};
    void *code = NULL;
    size_t code_bytes = 0;
    mdot_status status = cg_pack_weights(entries, entry_count, &weights, err);
    if (status == MDOT_OK) status = cu_make_images(entries, entry_count, options, arena, &images, err);
    if (status == MDOT_OK) status = cg_cpu_object(entries, entry_count, options, &code, &code_bytes, err);
    if (status == MDOT_OK)
        status = cg_build_table(entries, entry_count, options, weights.size_bytes, &images, &table, err);
    if (status == MDOT_OK) {
        cg_parts parts = {.table = table.bytes,
                          .weights = weights.bytes,
                          .code = code,
                          .table_bytes = table.size_bytes,
                          .weights_bytes = weights.size_bytes,
                          .code_bytes = code_bytes,
                          .cubins = images.cubins.bytes,
                          .cuda_weights = images.weights.bytes,
                          .cubins_bytes = images.cubins.size_bytes,
                          .cuda_weights_bytes = images.weights.size_bytes};
        status = cg_link_artefact(&parts, path, arena, err);
    }
    free(code);
    cg_pool_done(&table);
    cg_pool_done(&weights);
    cu_images_done(&images);
    return status;
}
