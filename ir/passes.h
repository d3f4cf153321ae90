/* passes.h — rewrites a graph, one pass per idea. The order and the reasons are in passes.def. */
#ifndef IR_PASSES_H
#define IR_PASSES_H

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
    const char *dump_pass; /* the name of a pass; `dump` receives the graph's text after it */
    void (*dump)(void *user, const char *text);
    void *user;
} ir_pass_options;

/* Runs all passes in order. In builds with MDOT_VERIFY the verifier runs after each pass, and reports a violation
 * with the pass's name. options may be NULL. */
mdot_status ir_run_passes(ir_graph *graph, const ir_pass_options *options, mdot_error *err);
/* Runs one pass by name, for tests. NOT_FOUND if the name is unknown. */
mdot_status ir_run_pass(ir_graph *graph, const char *name, bool *out_changed, mdot_error *err);

#endif
