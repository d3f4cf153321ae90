/* pass.h — the functions that passes.def names. Each does what its row says and keeps what the head of that file
 * says. */
#ifndef IR_PASSES_PASS_H
#define IR_PASSES_PASS_H

#include "ir/passes.h"

mdot_status ir_pass_infer(ir_graph *graph, bool *out_changed, mdot_error *err);       /* fold.c */
mdot_status ir_pass_widen(ir_graph *graph, bool *out_changed, mdot_error *err);       /* widen.c */
mdot_status ir_pass_simplify(ir_graph *graph, bool *out_changed, mdot_error *err);    /* simplify.c */
mdot_status ir_pass_contrib(ir_graph *graph, bool *out_changed, mdot_error *err);     /* contrib.c */
mdot_status ir_pass_quantised(ir_graph *graph, bool *out_changed, mdot_error *err);   /* quantised.c */
mdot_status ir_pass_products(ir_graph *graph, bool *out_changed, mdot_error *err);    /* products.c */
mdot_status ir_pass_norms(ir_graph *graph, bool *out_changed, mdot_error *err);       /* norms.c */
mdot_status ir_pass_group_norms(ir_graph *graph, bool *out_changed, mdot_error *err); /* group_norms.c */
mdot_status ir_pass_activations(ir_graph *graph, bool *out_changed, mdot_error *err); /* activations.c */
mdot_status ir_pass_rotations(ir_graph *graph, bool *out_changed, mdot_error *err);   /* rotations.c */
mdot_status ir_pass_linears(ir_graph *graph, bool *out_changed, mdot_error *err);     /* linears.c */
mdot_status ir_pass_attention(ir_graph *graph, bool *out_changed, mdot_error *err);   /* recognise_attention.c */
mdot_status ir_pass_merge(ir_graph *graph, bool *out_changed, mdot_error *err);       /* merge.c */
mdot_status ir_pass_expand(ir_graph *graph, bool *out_changed, mdot_error *err);      /* expand.c */
mdot_status ir_pass_transposes(ir_graph *graph, bool *out_changed, mdot_error *err);  /* transposes.c */

#endif
