/* graph.h — the compiler's graph: operators in static single assignment over typed values.
 *
 * frontend/ builds it, ir/passes/ changes it, and plan/ (compiler) and the job tokeniser read it. Everything lives
 * in the graph's arena. Nodes form a list in topological order: every value is defined before it is used.
 *
 * Operators are those of ONNX, in the form of the newest opset that mdot knows (the frontend upgrades older nodes:
 * see frontend/onnx/upgrade.c), and a few of mdot's own that passes create (domain "mdot" in ops.def).
 */
#pragma once

#include "base/status.h"
#include "ir/arena.h"
#include "ir/tensor.h"

typedef struct ir_graph ir_graph;
typedef struct ir_node ir_node;
typedef struct ir_value ir_value;
typedef struct ir_use ir_use;
struct ir_op; /* ops.h: one row of the operator table */

/* A dimension: scale * L + offset + times * floor((step * L + start) / divisor), where L is the bucket symbol, the
 * run-time length. Without a floor (times 0) it is affine in L, and a number has scale 0 as well.
 *
 * A strided convolution, for example, turns L into floor((L - 1) / 2) + 1. The form is normal, so dimensions are equal
 * at every length only if their fields are: times > 0, 0 < step < divisor, 0 <= start < divisor, and step and divisor
 * have no common factor. Therefore step * L + start is never negative, and truncation is the floor. The functions of
 * ir/dims.c give normal forms. */
typedef struct ir_dim {
    int64_t scale, offset;
    int32_t times, step, start, divisor; /* all 0: no floor */
} ir_dim;

static inline ir_dim ir_dim_affine(int64_t scale, int64_t offset) { return (ir_dim){.scale = scale, .offset = offset}; }
static inline ir_dim ir_dim_number(int64_t n) { return ir_dim_affine(0, n); }
static inline bool ir_dim_is_affine(ir_dim d) { return d.times == 0; }
static inline bool ir_dim_is_number(ir_dim d) { return d.scale == 0 && d.times == 0; }
static inline bool ir_dim_same_floor(ir_dim a, ir_dim b)
{
    return a.step == b.step && a.start == b.start && a.divisor == b.divisor;
}
static inline bool ir_dim_equal(ir_dim a, ir_dim b)
{
    return a.scale == b.scale && a.offset == b.offset && a.times == b.times && ir_dim_same_floor(a, b);
}
/* At every length. */
static inline bool ir_dim_is_multiple(ir_dim d, int64_t divisor)
{
    return d.scale % divisor == 0 && d.offset % divisor == 0 && d.times % divisor == 0;
}
static inline bool ir_dim_is(ir_dim d, int64_t n) { return ir_dim_is_number(d) && d.offset == n; }
/* L is at least 0. */
static inline int64_t ir_dim_at(ir_dim d, int64_t length)
{
    int64_t affine = d.scale * length + d.offset;
    return d.times == 0 ? affine : affine + d.times * ((d.step * length + d.start) / d.divisor);
}

/* The greatest value for L from `first` to `last` (ir/dims.c). */
int64_t ir_dim_most(ir_dim d, int64_t first, int64_t last);

typedef struct ir_type {
    mdot_dtype dtype; /* NONE: not yet inferred */
    int rank;         /* -1: not yet inferred */
    ir_dim dim[MDOT_MAX_RANK];
} ir_type;

/* Content of a small integer tensor (of any numeric type) known at compile time, element by element, for example the
 * result of shape arithmetic. Shape rules set it. Elements are dimensions, so they may depend on L. */
enum { IR_MAX_KNOWN = 256 };
typedef struct ir_known {
    int count;
    const ir_dim *element;
} ir_known;

/* A use, linked with the value's other uses. */
struct ir_use {
    ir_node *node;        /* NULL: the graph's outputs */
    int index;            /* index among the node's inputs, or the graph's outputs */
    ir_use *next, **link; /* `link` is the pointer to this use: the value's `uses`, or the `next` of the use before */
};

struct ir_value {
    int id; /* dense, unique in the graph */
    const char *name;
    ir_type type;
    const ir_tensor *constant; /* an initializer or a folded value; then def is NULL. NULL: other values */
    bool stored;               /* the constant is an initializer of the file */
    mdot_dtype rounded;        /* the narrower type that the constant was cast from; NONE: it has its full precision */
    mdot_dtype declared;       /* type that the file states for a graph output; NONE: unstated */
    const ir_known *known;
    ir_node *def; /* NULL: a graph input or a constant */
    int output;   /* index among def's outputs */
    int input;    /* index among the graph's inputs, or -1 */
    /* maintained by ir_graph_* and ir_node_*: */
    ir_use *uses;    /* unordered */
    int use_count;   /* node inputs and graph outputs reading the value */
    int output_uses; /* graph outputs among them */
};

typedef enum ir_attr_kind {
    IR_ATTR_INT,
    IR_ATTR_FLOAT,
    IR_ATTR_STRING,
    IR_ATTR_INTS,
    IR_ATTR_FLOATS,
    IR_ATTR_STRINGS,
    IR_ATTR_TENSOR,
    IR_ATTR_GRAPH /* control flow; the content is dropped */
} ir_attr_kind;

typedef struct ir_attr {
    const char *name;
    ir_attr_kind kind;
    int64_t i;
    double f;
    const char *s; /* NUL-terminated */
    int count;     /* length of the arrays below */
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    const ir_tensor *tensor;
} ir_attr;

#define IR_INT(key, value) ((ir_attr){.name = (key), .kind = IR_ATTR_INT, .i = (value)})
#define IR_FLOAT(key, value) ((ir_attr){.name = (key), .kind = IR_ATTR_FLOAT, .f = (value)})
#define IR_STRING(key, value) ((ir_attr){.name = (key), .kind = IR_ATTR_STRING, .s = (value)})
#define IR_INTS(key, values, size) ((ir_attr){.name = (key), .kind = IR_ATTR_INTS, .count = (size), .ints = (values)})

/* Lists as two arguments: the elements and their number. */
#define IR_VALUES(...) (ir_value *[]){__VA_ARGS__}, (int)(sizeof((ir_value *[]){__VA_ARGS__}) / sizeof(ir_value *))
#define IR_NO_ATTRS NULL, 0
#define IR_ATTRS(...) (const ir_attr[]){__VA_ARGS__}, (int)(sizeof((const ir_attr[]){__VA_ARGS__}) / sizeof(ir_attr))

struct ir_node {
    const struct ir_op *op;
    const char *name;    /* for messages: the ONNX node's name, or "Add→/Add_2_output_0" if it is unnamed */
    const char *op_type; /* as in the file, with its domain; shown in messages about unknown operators */
    int input_count, output_count;
    ir_value **inputs;  /* NULL for an optional input that is absent; changed only by ir_node_set_input */
    ir_use *uses;       /* one per input, linked if the input is present */
    ir_value **outputs; /* NULL for an optional output that is absent */
    int attr_count;
    ir_attr *attrs;
    ir_node *prev, *next;
};

/* Entries of the file's metadata that are meant for mdot: the key begins with IR_NOTE_PREFIX. */
#define IR_NOTE_PREFIX "mdot."
typedef struct ir_note {
    const char *key, *value;
} ir_note;

struct ir_graph {
    ir_arena *arena;
    const char *name; /* the model's name for messages: its file */
    int input_count, output_count;
    ir_value **inputs;
    ir_value **outputs;
    ir_use **output_uses; /* one per output */
    ir_node *first, *last;
    int value_count;     /* number of ids in use */
    const char *symbol;  /* the bucket dimension's ONNX name; NULL: no symbolic dimension */
    int64_t batch;       /* size of the dimension named as the batch; 0: none */
    bool has_batch;      /* the file leaves a job's batch open */
    int64_t min_length;  /* minimum of L; 0 means 1 (ir_first_length) */
    int64_t max_length;  /* maximum of L; set when a bucket is bound, INT64_MAX before */
    bool keeps_equals;   /* equal nodes run as often as they are written, for example in a trace of PyTorch */
    bool keeps_products; /* equal matmuls, convolutions, recurrences and attention do */
    int note_count;      /* notes have no effect on computation, so the text form omits them */
    const ir_note *notes;
};

static inline int64_t ir_first_length(const ir_graph *graph) { return graph->min_length > 0 ? graph->min_length : 1; }

/* ---- Building and changing. NULL or false: out of memory. ------------------------------------------------------- */

ir_graph *ir_graph_create(ir_arena *arena, const char *name);
/* Makes a deep copy in another arena, so each bucket can be changed separately. Constant data is shared. */
ir_graph *ir_graph_clone(const ir_graph *graph, ir_arena *arena);

ir_value *ir_graph_add_input(ir_graph *graph, const char *name, const ir_type *type);
ir_value *ir_graph_add_constant(ir_graph *graph, const char *name, const ir_tensor *tensor);
bool ir_graph_add_output(ir_graph *graph, ir_value *value);
void ir_graph_set_output(ir_graph *graph, int index, ir_value *value);
/* Drops the outputs for which `keeps` is false. */
void ir_graph_keep_outputs(ir_graph *graph, bool (*keeps)(void *user, const ir_value *output), void *user);

/* Adds a node before `before` (NULL: at the end) with `output_count` new, untyped outputs named after the node. */
ir_node *ir_graph_add_node(ir_graph *graph, ir_node *before, const struct ir_op *op, const char *name,
                           ir_value *const *inputs, int input_count, int output_count);
/* Replaces the attribute of the same name, or adds one. Copies its name, text and list of integers. */
bool ir_node_set(ir_graph *graph, ir_node *node, ir_attr attr);
void ir_node_set_input(ir_node *node, int index, ir_value *value);
/* Changes the input count. Inputs from `count` on are removed; new inputs are absent. */
bool ir_node_set_input_count(ir_graph *graph, ir_node *node, int count);
void ir_node_remove_attr(ir_node *node, const char *name);

/* Redirects every use of `old`, including the graph's outputs, to `replacement`. Takes time in proportion to the
 * uses. */
void ir_graph_replace_uses(ir_graph *graph, ir_value *old, ir_value *replacement);
/* Is no output used? */
bool ir_node_is_dead(const ir_node *node);
/* Has every present input a type? Unknown operators' results, and dependent values, have none. */
bool ir_node_has_typed_inputs(const ir_node *node);
/* Removes a node, whose outputs must be unused. */
void ir_graph_remove_node(ir_graph *graph, ir_node *node);
/* Removes nodes whose outputs are all unused, from the end. Returns their number. */
int ir_graph_remove_dead(ir_graph *graph);

/* ---- Reading ------------------------------------------------------------------------------------------------- */

const ir_attr *ir_node_attr(const ir_node *node, const char *name); /* NULL: absent */
/* The attribute if it is a list of integers. NULL: absent or of another type. */
const ir_attr *ir_node_ints(const ir_node *node, const char *name);
/* `perm` of a typed Transpose of `rank` dimensions, which may count from the end: output axis i is input axis
 * out_perm[i], in [0, rank). If it is absent, all axes are reversed. */
void ir_node_perm(const ir_node *transpose, int rank, int64_t *out_perm);
int64_t ir_node_int(const ir_node *node, const char *name, int64_t fallback);
double ir_node_float(const ir_node *node, const char *name, double fallback);
/* The attribute axis, counted from the first of `rank` dimensions. */
int ir_node_axis(const ir_node *node, int64_t fallback, int rank);
const char *ir_node_string(const ir_node *node, const char *name, const char *fallback);
/* Input i. NULL: absent, or beyond the count. */
static inline ir_value *ir_node_input(const ir_node *node, int i)
{
    return i < node->input_count ? node->inputs[i] : NULL;
}
/* Is an input before this one the same value? False if this input is absent. */
bool ir_node_reads_before(const ir_node *node, int index);
/* A value's only reader. NULL: it has several readers or none, or is a graph output. */
ir_node *ir_value_single_user(const ir_value *value);

/* Integers known at compile time, from `known` or from a constant of at most IR_MAX_KNOWN elements. False: unknown.
 * The type may be floating, because exporters compute lengths in it, but every element must be an exactly represented
 * integer. `out` holds up to IR_MAX_KNOWN elements, and *out_count is set. */
bool ir_value_known(const ir_value *value, ir_dim out[static IR_MAX_KNOWN], int *out_count);
/* Does the same, but every element must be a number. */
bool ir_value_ints(const ir_value *value, int64_t out[static IR_MAX_KNOWN], int *out_count);
/* Does the same for exactly one element. */
bool ir_value_int(const ir_value *value, int64_t *out);
/* Reads a scalar constant of any numeric type (one element). False: it is not one. */
bool ir_value_scalar(const ir_value *value, double *out);

/* The element count at a given length; the product of dims is a polynomial in L. -1 on overflow. */
int64_t ir_type_count_at(const ir_type *type, int64_t length);
bool ir_type_equal(const ir_type *a, const ir_type *b);
/* Do two shapes differ only in one-element dimensions? */
bool ir_only_units_differ(const ir_type *a, const ir_type *b);

/* ---- Text (ir/graph_text.c): the tests parse it back to the same graph ------------------------------------------- */

/* The text as one string in the arena. NULL: out of memory. */
char *ir_graph_print(const ir_graph *graph, ir_arena *arena);

/* ---- Rules (ir/verify_graph.c): invariants of every graph between passes; the list is in that file --------------- */

mdot_status ir_graph_verify(const ir_graph *graph, mdot_error *err);
