/* run_passes.c — runs the passes in the order of passes.def, with dumps and verification in between. */
#include "ir/ops.h"
#include "ir/passes.h"

#include <string.h>

#define RUN(function) function, NULL, NULL, NULL
#define RULE(function) NULL, function, NULL, NULL
#define RULES(table) NULL, NULL, table, NULL
#define FOLDS(table) NULL, NULL, table, ir_fold_node
const ir_pass ir_passes[] = {
#define PASS(name, work, needs, purpose) {#name, work},
#include "ir/passes/passes.def"
};
const int ir_pass_count = (int)(sizeof ir_passes / sizeof *ir_passes);

static mdot_status run(ir_graph *graph, const ir_pass *pass, bool *out_changed, mdot_error *err)
{
    bool changed = false;
    BS_TRY(pass->rules != NULL  ? ir_rewrite_by_opcode(graph, pass->rules, pass->otherwise, &changed, err)
           : pass->rule != NULL ? ir_rewrite(graph, pass->rule, &changed, err)
                                : pass->run(graph, &changed, err));
    if (ir_arena_failed(graph->arena)) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
#ifdef MDOT_VERIFY
    mdot_error broken;
    mdot_status status = ir_graph_verify(graph, &broken);
    if (status != MDOT_OK) return mdot_fail(err, status, "after pass %s: %s", pass->name, broken.message);
#endif
    *out_changed = changed;
    return MDOT_OK;
}

static mdot_status dump(const ir_graph *graph, const ir_pass_options *options, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    const char *text = arena != NULL ? ir_graph_print(graph, arena) : NULL;
    if (text != NULL) options->dump(options->user, text);
    ir_arena_destroy(arena);
    return text != NULL ? MDOT_OK : BS_OUT_OF_MEMORY(err, "%s", graph->name);
}

mdot_status ir_run_passes(ir_graph *graph, const ir_pass_options *options, mdot_error *err)
{
    for (int i = 0; i < ir_pass_count; i++) {
        bool changed;
        BS_TRY(run(graph, &ir_passes[i], &changed, err));
        if (options == NULL || options->dump_pass == NULL || strcmp(options->dump_pass, ir_passes[i].name) != 0)
            continue;
        BS_TRY(dump(graph, options, err));
    }
    return MDOT_OK;
}

mdot_status ir_run_pass(ir_graph *graph, const char *name, bool *out_changed, mdot_error *err)
{
    for (int i = 0; i < ir_pass_count; i++)
        if (strcmp(ir_passes[i].name, name) == 0) return run(graph, &ir_passes[i], out_changed, err);
    return mdot_fail(err, MDOT_NOT_FOUND, "unknown pass %s", name);
}
