/* ops.c — operator look-up, and the report of unsupported operators. */
#include "ir/ops.h"

#include "base/suggest.h"
#include "base/text.h"

#include <pthread.h>
#include <string.h>

enum { SLOT_COUNT = 512 }; /* a power of two, at least twice the table */
_Static_assert(IR_OP_COUNT * 2 <= SLOT_COUNT, "the look-up table is too full: double SLOT_COUNT");

static const ir_op *slots[SLOT_COUNT];

/* FNV-1a (Fowler, Noll, Vo), 32 bits, over the domain, a separator and the name. */
static unsigned slot_of(const char *domain, const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (; *domain; domain++) hash = (hash ^ (unsigned char)*domain) * UINT32_C(16777619);
    hash = (hash ^ ':') * UINT32_C(16777619);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return (hash ^ hash >> 16) & (SLOT_COUNT - 1);
}

static void fill_slots(void)
{
    for (int i = 0; i < IR_OP_COUNT; i++) {
        unsigned slot = slot_of(ir_ops[i].domain, ir_ops[i].name);
        while (slots[slot] != NULL) slot = (slot + 1) & (SLOT_COUNT - 1);
        slots[slot] = &ir_ops[i];
    }
}

const ir_op *ir_op_find(const char *domain, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_slots);
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (unsigned slot = slot_of(domain, name); slots[slot] != NULL; slot = (slot + 1) & (SLOT_COUNT - 1))
        if (strcmp(slots[slot]->name, name) == 0 && strcmp(slots[slot]->domain, domain) == 0) return slots[slot];
    return NULL;
}

static bool is_supported(const ir_node *node) { return node->op != NULL && node->op->lowering != IR_LOWER_NONE; }

/* Number of nodes named per type: enough to find them, and few enough that every type fits into the message. */
enum { MAX_NAMED = 6 };

#define RANDOM "random numbers: export the model for inference, or make the numbers an input"
#define SELECTED "the number of elements depends on data: end the model in front of it"
#define SEQUENCE "sequences of tensors: use Split and Concat"
#define TEXT "text: encode it as numbers in front of the model"

/* An alternative that a model may use for the same purpose; NULL: unknown. Shapes must follow from the length alone,
 * so operators whose output shape depends on data have no kernel. */
static const char *way_out(const char *op_type)
{
    static const struct {
        const char *op_type, *instead;
    } ways[] = {
        {"Compress", "the number of elements depends on data: keep the shape and write torch.where(mask, x, 0), or "
                     "replace a KNNImputer by a SimpleImputer"},
        {"Unique", SELECTED},
        {"NonMaxSuppression", SELECTED},
        {"RandomNormal", RANDOM},
        {"RandomNormalLike", RANDOM},
        {"RandomUniform", RANDOM},
        {"RandomUniformLike", RANDOM},
        {"Bernoulli", RANDOM},
        {"Multinomial", RANDOM},
        {"SequenceConstruct", SEQUENCE},
        {"SequenceAt", SEQUENCE},
        {"SequenceInsert", SEQUENCE},
        {"SequenceEmpty", SEQUENCE},
        {"SplitToSequence", SEQUENCE},
        {"ConcatFromSequence", SEQUENCE},
        {"GridSample", "positions between elements depend on data: write Gather with rounded positions"},
        {"LpPool", "write AveragePool of a power, and a root behind it"},
        {"GlobalLpPool", "write ReduceL1 or ReduceL2 over the axes from the third on"},
        {"LRN", "write AveragePool of squares over the channels, or use LayerNormalization"},
        {"Col2Im", "write ConvTranspose with a constant kernel"},
        {"com.microsoft:GroupQueryAttention",
         "it keeps keys between calls, but an artefact has no state: export Attention without a cache"},
        {"com.microsoft:DynamicQuantizeLSTM",
         "it rounds states in each step: leave LSTM out of the operators that quantize_dynamic quantises"},
        {"com.microsoft:Solve", "multiply by the inverse of the constant matrix"},
        {"StringNormalizer", TEXT},
        {"StringConcat", TEXT},
        {"StringSplit", TEXT},
        {"RegexFullMatch", TEXT},
        {"TfIdfVectorizer", TEXT},
        {"com.microsoft:Tokenizer", TEXT},
        {"If", "the branch depends on data, and the results of the branches differ in type or shape: give both "
               "the same shape and write torch.where(condition, a, b), or fix the dimension that selects the "
               "branch (--dim)"},
        {"Loop (its steps depend on data)",
         "the number of steps must be constant, or affine in the length, and the condition must be true or compare a "
         "counter with such a number"},
        {"Loop (within a loop)", "an inner loop must have a constant number of steps, and few enough to be unrolled"},
        {"Scan (within a loop)", "write the inner loop as a Loop with a small constant number of steps"},
        {"Scan (of opset 8)", "export the model with opset 9 or later"},
    };
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (strcmp(ways[k].op_type, op_type) == 0) return ways[k].instead;
    return NULL;
}

/* A supported operator whose name the unknown one misspells, as text; empty: none. */
static bs_suggest_hint misspelt(const char *op_type)
{
    enum { SHORTEST = 4 }; /* ONNX has unlike operators of three letters, for example Det and DFT */
    bs_suggest suggestion = bs_suggest_begin(op_type);
    for (int i = 0; i < IR_OP_COUNT; i++) {
        size_t known = strlen(ir_ops[i].name), unknown = strlen(op_type);
        bool is_as_long = unknown >= SHORTEST && known <= unknown + 1 && unknown <= known + 1; /* MaxUnpool, MaxPool */
        if (is_as_long && ir_ops[i].domain[0] == '\0' && ir_ops[i].lowering != IR_LOWER_NONE)
            bs_suggest_add(&suggestion, ir_ops[i].name);
    }
    return bs_suggest_end(&suggestion);
}

/* Adds `Type at "a", "b" … and 3 more` for the unsupported nodes of the type of `first`, the first such node. Returns
 * whether this names a remedy. */
static bool list_type(bs_join *types, const ir_node *first)
{
    char text[512]; /* truncates names, so the first of each list fits */
    bs_join names;
    bs_join_begin(&names, text, sizeof text);
    for (const ir_node *node = first; node != NULL; node = node->next) {
        if (is_supported(node) || strcmp(node->op_type, first->op_type) != 0) continue;
        if (names.count < MAX_NAMED)
            bs_join_add(&names, "\"%.400s\"", node->name);
        else
            bs_join_omit(&names);
    }
    const char *instead = way_out(first->op_type);
    bs_suggest_hint hint = instead == NULL && first->op == NULL ? misspelt(first->op_type) : (bs_suggest_hint){""};
    bs_join_add(types, "%.80s%s at %s%s%s%s", first->op_type, hint.text, text, instead != NULL ? " (" : "",
                instead != NULL ? instead : "", instead != NULL ? ")" : "");
    return instead != NULL || hint.text[0] != '\0';
}

static mdot_status refuse_strings(const ir_graph *graph, const ir_value *value, mdot_error *err)
{
    if (value == NULL || value->type.dtype != MDOT_DTYPE_STRING) return MDOT_OK; /* an output may be absent */
    return mdot_fail(
        err, MDOT_UNSUPPORTED,
        "%s: \"%s\" holds strings, but kernels support only numbers and booleans; encode text in front of the model",
        graph->name, value->name);
}

/* Refuses strings as inputs, outputs or intermediate values, because an artefact cannot hold them. */
static mdot_status check_types(const ir_graph *graph, mdot_error *err)
{
    for (int i = 0; i < graph->input_count; i++) BS_TRY(refuse_strings(graph, graph->inputs[i], err));
    for (const ir_node *node = graph->first; node != NULL; node = node->next)
        for (int i = 0; i < node->output_count; i++) BS_TRY(refuse_strings(graph, node->outputs[i], err));
    for (int i = 0; i < graph->output_count; i++) BS_TRY(refuse_strings(graph, graph->outputs[i], err));
    return MDOT_OK;
}

mdot_status ir_check_supported(const ir_graph *graph, mdot_error *err)
{
    char text[sizeof((mdot_error *)0)->message];
    bool has_remedies = true;
    bs_join types;
    bs_join_begin(&types, text, sizeof text);
    types.separator = "; ";
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (is_supported(node)) continue;
        const ir_node *earlier = graph->first;
        while (earlier != node && (is_supported(earlier) || strcmp(earlier->op_type, node->op_type) != 0))
            earlier = earlier->next;
        if (earlier == node) has_remedies = list_type(&types, node) && has_remedies;
    }
    if (text[0] == '\0') return check_types(graph, err);
    return mdot_fail(err, MDOT_UNSUPPORTED, "%s: unsupported operators: %s%s", graph->name, text,
                     has_remedies ? ""
                                  : "; write them with operators of docs/reference/operators.md, for example in a "
                                    "function of the model");
}
