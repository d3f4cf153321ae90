/* passes.h — rewrites a graph, one pass per idea. The order and the reasons are in passes.def. */
#pragma once

#include "ir/passes/graph_builder.h"

/* A pass changes the graph in place, keeps it valid, and reports whether it changed anything. */
typedef mdot_status ir_pass_fn(ir_graph *graph, bool *out_changed, mdot_error *err);

typedef struct ir_pass { /* one of the three members behind the name is set */
    const char *name;
    ir_pass_fn *run;
    ir_rule rule;         /* for every node (ir_rewrite) */
    const ir_rule *rules; /* by opcode (ir_rewrite_by_opcode) */
    ir_rule otherwise;    /* for nodes that no rule changed; may be NULL */
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

/* ---- The functions and tables that passes.def names, each in the file of its name (infer: fold.c). They implement
 * their rows and keep the properties listed at the head of passes.def. */

ir_pass_fn ir_pass_bound_nonzero, ir_pass_infer, ir_pass_promote_f16, ir_pass_simplify, ir_pass_hoist_from_loops,
    ir_pass_recognise_attention;
ir_rule_fn ir_rule_recognise_activations, ir_rule_fuse_rotary, ir_rule_fuse_qkv, ir_rule_sink_transposes;
extern const ir_rule ir_rules_lower_contrib[], ir_rules_lower_quantised[], ir_rules_einsum_to_matmul[],
    ir_rules_recognise_norms[], ir_rules_recognise_group_norms[], ir_rules_form_linear[], ir_rules_expand[];
