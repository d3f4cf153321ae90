/* job_table.c — ir/ops_job.def as a table: how a training step treats each operator. */
#include "frontend/job/job_tables.h"

#include "frontend/job/traced_program.h"

#include <limits.h>
#include <string.h>

enum {
#define JOB(id, ...) ROW_##id,
#include "ir/ops_job.def"
    ROW_COUNT
};
#define OP(id, ...) _Static_assert((int)ROW_##id == (int)IR_OP_##id, #id " has another position in ops_job.def");
#include "ir/ops.def"
_Static_assert((int)ROW_COUNT == (int)IR_OP_COUNT, "the rows of ops_job.def and ops.def differ");

#define ALL 0 /* all operands; for saved tensors, the treatment of unknown operators */
#define NOTHING MDOT_SAVES_NOTHING
#define INPUTS MDOT_SAVES_INPUTS
#define RESULT MDOT_SAVES_RESULT
#define FACTORS MDOT_SAVES_FACTORS
#define INDICES MDOT_SAVES_INDICES
#define SCORES MDOT_SAVES_SCORES
#define NONE 0
#define VIEW MDOT_TRAIT_VIEW
#define PICKS MDOT_TRAIT_PICKS
#define PARTS MDOT_TRAIT_PARTS
#define SUMS_PARTS MDOT_TRAIT_SUMS_PARTS
#define FREE FE_FREE
#define FREE_FLOATS FE_FREE_FLOATS
#define NUMBERS FE_NUMBERS

static const fe_row rows[IR_OP_COUNT] = {
#define JOB(id, type_id, type_number, gradient_kind, settings_kind, autocast_class, decomposed, fused, recomputed,     \
            reserved, all_traits, parameters)                                                                          \
    [IR_OP_##id] = {.type = IR_OP_##type_id,                                                                           \
                    .traits = {.number = type_number,                                                                  \
                               .autocast = MDOT_AUTOCAST_##autocast_class,                                             \
                               .saved_written = decomposed,                                                            \
                               .saved_fused = fused,                                                                   \
                               .saved_recomputed = recomputed,                                                         \
                               .reserve = reserved,                                                                    \
                               .traits = (all_traits) & (FE_FREE - 1)},                                                \
                    .gradient = FE_GRADIENT_##gradient_kind,                                                           \
                    .settings = FE_SETTINGS_##settings_kind,                                                           \
                    .is_free = ((all_traits)&FE_FREE) != 0,                                                            \
                    .is_free_between_floats = ((all_traits)&FE_FREE_FLOATS) != 0,                                      \
                    .reads_numbers = ((all_traits)&FE_NUMBERS) != 0,                                                   \
                    .parameter_operands = (parameters) == ALL ? INT_MAX : (parameters)},
#include "ir/ops_job.def"
};

const fe_row *fe_row_at(ir_opcode opcode) { return &rows[opcode]; }

const fe_row *fe_row_of(const ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_Opaque]) return &rows[ir_node_opcode(node)];
    return &rows[ir_node_int(node, FE_PRICED_AS, IR_OP_Opaque)];
}

mdot_status mdot_operator_traits_find(const char *type, mdot_operator_traits *out_traits)
{
    if (type == NULL || out_traits == NULL) return MDOT_INVALID_ARGUMENT;
    *out_traits = (mdot_operator_traits){0};
    for (int i = 0; i < IR_OP_COUNT; i++) {
        if (rows[i].type != (ir_opcode)i || rows[i].traits.number == 0 || strcmp(ir_ops[i].name, type) != 0) continue;
        *out_traits = rows[i].traits;
        return MDOT_OK;
    }
    return MDOT_NOT_FOUND;
}
