/* graph_edit.h — building blocks of rewriting. NULL and false: out of memory. Private to frontend/onnx. */
#pragma once

#include "frontend/onnx/import_context.h"
#include "ir/ops.h"

/* A Gather that replaces a Slice by a loop's counter: rows sign * base + offset to that + width - 1 (data_slices.c). */
typedef struct fe_counted_rows {
    ir_node *gather;
    const char *name;     /* of the Slice */
    const ir_value *base; /* the counter, a result of a LoopBegin */
    int sign;
    ir_dim offset;
    int64_t width;
    ir_dim extent;  /* number of rows in the tensor */
    bool is_inside; /* in every step */
    struct fe_counted_rows *next;
} fe_counted_rows;

typedef struct fe_upgrader {
    const fe_context *context;
    ir_graph *graph;
    ir_node *typed;           /* the last node that was offered to the shape rules; NULL: none */
    int64_t unpacked_weights; /* weights unpacked by matmul_nbits.c */
    bool leaves_dead_nodes;   /* set by rewritings of several nodes */
    fe_counted_rows *counted_rows;
} fe_upgrader;

/* A value's type from the shape rules, or rank -1 if they cannot derive it. */
const ir_type *fe_type_of(fe_upgrader *u, const ir_value *value);
/* Does the same between nodes, when the last node is upgraded, too. */
const ir_type *fe_type_of_upgraded(fe_upgrader *u, const ir_value *value);
/* The value below operators that keep a one-element number or truth value. */
const ir_value *fe_strip_shape(const ir_value *v);
/* Clears types inferred for rewriting, because inference is a separate pass that knows the bound length. */
void fe_forget_types(const fe_upgrader *u);
/* Adds constants named after the node. */
ir_value *fe_add_constant(const fe_upgrader *u, const ir_node *node, const char *what, const ir_tensor *tensor);
ir_value *fe_add_ints(const fe_upgrader *u, const ir_node *node, const char *what, const int64_t *values, int count);
ir_value *fe_add_scalar(const fe_upgrader *u, const ir_node *node, const char *what, mdot_dtype dtype, double value);
/* A constant whose data, in the layout of ir_tensor, the caller made in the graph's arena. */
ir_value *fe_add_data(const fe_upgrader *u, const ir_node *node, const char *what, mdot_dtype dtype, int rank,
                      const int64_t *dims, const void *data);
/* Sets input `index`; the list grows with absent inputs as needed. */
bool fe_set_input(const fe_upgrader *u, ir_node *node, int index, ir_value *value);
bool fe_set_tensor(const fe_upgrader *u, ir_node *node, const char *name, const ir_tensor *tensor);
/* Inserts an operator with one output before `node`, and names it after the node: fe_add(u, node, IR_OP_Cast,
 * IR_VALUES(x), IR_ATTRS(IR_INT("to", dtype))). NULL also if an input is NULL. */
ir_value *fe_add(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count,
                 const ir_attr *attrs, int attr_count);
/* The same behind `node`, without attributes. */
ir_node *fe_insert_after(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count);
/* Exchanges output i of `node` and output 0 of `last`. Later readers of the node's value then read the value computed
 * by `last`. */
void fe_swap_output(ir_node *node, int i, ir_node *last);
bool fe_give_up(const fe_upgrader *u, ir_node *node, const char *reason);
