/* passes.h — rewrites a graph, one pass per idea. The order and the reasons are in passes.def. */
#pragma once

#include "ir/graph.h"

/* A pass changes the graph in place, keeps it valid, and reports whether it changed anything. */
typedef mdot_status (*ir_pass_fn)(ir_graph *graph, bool *out_changed, mdot_error *err);

typedef struct ir_pass {
    const char *name;
    ir_pass_fn run;
    const char *purpose;
} ir_pass;

extern const ir_pass ir_passes[];
extern const int ir_pass_count;

typedef struct ir_pass_options {
    const char *dump_pass; /* a pass's name; `dump` receives the graph's text after it */
    void (*dump)(void *user, const char *text);
    void *user;
} ir_pass_options;

/* Runs all passes in order. In builds with MDOT_VERIFY the verifier runs after each pass, and reports a violation
 * with the pass's name. options may be NULL. */
mdot_status ir_run_passes(ir_graph *graph, const ir_pass_options *options, mdot_error *err);
/* Runs one pass by name, for tests. NOT_FOUND if the name is unknown. */
mdot_status ir_run_pass(ir_graph *graph, const char *name, bool *out_changed, mdot_error *err);

/* ---- The functions that passes.def names. Each implements its row and keeps the properties listed at the head of that
 * file. */

mdot_status ir_pass_bound_nonzero(ir_graph *graph, bool *out_changed, mdot_error *err);    /* bound_nonzero.c */
mdot_status ir_pass_infer(ir_graph *graph, bool *out_changed, mdot_error *err);            /* fold.c */
mdot_status ir_pass_promote_f16(ir_graph *graph, bool *out_changed, mdot_error *err);      /* promote_f16.c */
mdot_status ir_pass_simplify(ir_graph *graph, bool *out_changed, mdot_error *err);         /* simplify.c */
mdot_status ir_pass_lower_contrib(ir_graph *graph, bool *out_changed, mdot_error *err);    /* lower_contrib.c */
mdot_status ir_pass_lower_quantised(ir_graph *graph, bool *out_changed, mdot_error *err);  /* lower_quantised.c */
mdot_status ir_pass_einsum_to_matmul(ir_graph *graph, bool *out_changed, mdot_error *err); /* einsum_to_matmul.c */
mdot_status ir_pass_recognise_norms(ir_graph *graph, bool *out_changed, mdot_error *err);  /* recognise_norms.c */
mdot_status ir_pass_recognise_group_norms(ir_graph *graph, bool *out_changed,
                                          mdot_error *err); /* recognise_group_norms.c */
mdot_status ir_pass_recognise_activations(ir_graph *graph, bool *out_changed,
                                          mdot_error *err);                                /* recognise_activations.c */
mdot_status ir_pass_fuse_rotary(ir_graph *graph, bool *out_changed, mdot_error *err);      /* fuse_rotary.c */
mdot_status ir_pass_form_linear(ir_graph *graph, bool *out_changed, mdot_error *err);      /* form_linear.c */
mdot_status ir_pass_hoist_from_loops(ir_graph *graph, bool *out_changed, mdot_error *err); /* hoist_from_loops.c */
mdot_status ir_pass_recognise_attention(ir_graph *graph, bool *out_changed,
                                        mdot_error *err);                                 /* recognise_attention.c */
mdot_status ir_pass_fuse_qkv(ir_graph *graph, bool *out_changed, mdot_error *err);        /* fuse_qkv.c */
mdot_status ir_pass_expand(ir_graph *graph, bool *out_changed, mdot_error *err);          /* expand.c */
mdot_status ir_pass_sink_transposes(ir_graph *graph, bool *out_changed, mdot_error *err); /* sink_transposes.c */
