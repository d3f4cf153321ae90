/* artefact.c — plans → predictor.mdot: the code generator's steps in order. */
#include "codegen/artefact.h"

#include "codegen/backend.h"
#include "codegen/byte_pool.h"

static mdot_status link_parts(const cg_image_set sets[CG_BACKENDS], const cg_table *table, const cg_options *options,
                              const char *path, ir_arena *arena, mdot_error *err)
{
    cg_data_section sections[1 + CG_BACKENDS * CG_MAX_SECTIONS] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, table->pool.bytes, table->pool.size_bytes, MDOT_ABI_ALIGNMENT}};
    cg_parts parts = {.sections = sections, .section_count = 1, .check = options->check};
    for (int b = 0; b < CG_BACKENDS; b++) {
        for (int i = 0; i < sets[b].section_count; i++) sections[parts.section_count++] = sets[b].section[i];
        if (sets[b].machine == NULL) continue;
        parts.machine = sets[b].machine;
        parts.code = sets[b].code;
        parts.code_bytes = sets[b].code_bytes;
    }
    return cg_link_artefact(&parts, path, arena, err);
}

mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err)
{
    cg_image_set sets[CG_BACKENDS] = {0};
    cg_table table = {0};
    mdot_status status = MDOT_OK;
    for (int b = CG_BACKENDS - 1; b >= 0 && status == MDOT_OK; b--) /* first the backends that may fail because a
                                                                     * toolchain is missing */
        status = cg_backends[b]->make_images(entries, entry_count, options, arena, &sets[b], err);
    if (status == MDOT_OK) status = cg_build_table(entries, entry_count, options, sets, &table, err);
    if (status == MDOT_OK) status = link_parts(sets, &table, options, path, arena, err);
    cg_pool_done(&table.pool);
    for (int b = 0; b < CG_BACKENDS; b++) cg_backends[b]->done(sets[b].images);
    return status;
}
