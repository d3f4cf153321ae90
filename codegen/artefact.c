/* artefact.c — plans → predictor.mdot: the code generator's steps in order. */
#include "codegen/artefact.h"

mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err)
{
    cg_pool table = {0};
    cu_images cuda = {0};
    cg_cpu_images cpu = {0};
    mdot_status status = cu_make_images(entries, entry_count, options, arena, &cuda, err);
    if (status == MDOT_OK) status = cg_cpu_make_images(entries, entry_count, options, arena, &cpu, err);
    if (status == MDOT_OK) status = cg_build_table(entries, entry_count, options, &cpu, &cuda, &table, err);
    if (status == MDOT_OK) {
        cg_parts parts = {.machine = cpu.machine,
                          .table = table.bytes,
                          .weights = cpu.weights.bytes,
                          .code = cpu.code,
                          .table_bytes = table.size_bytes,
                          .weights_bytes = cpu.weights.size_bytes,
                          .code_bytes = cpu.code_bytes,
                          .cubins = cuda.cubins.bytes,
                          .cuda_weights = cuda.weights.bytes,
                          .cubins_bytes = cuda.cubins.size_bytes,
                          .cuda_weights_bytes = cuda.weights.size_bytes};
        status = cg_link_artefact(&parts, path, arena, err);
    }
    cg_pool_done(&table);
    cg_cpu_images_done(&cpu);
    cu_images_done(&cuda);
    return status;
}
