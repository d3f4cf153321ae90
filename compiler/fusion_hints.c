/* fusion_hints.c — hints for patterns without a fused kernel: unfused matmuls of two computed matrices, and unfused
 * softmaxes. They are correct but slow. docs/reference/fused-patterns.md lists the known cases. */
#include "compiler/compiler.h"
#include "ir/ops.h"

#include <stdio.h>

enum { MAX_NAMED = 3 };

typedef struct found {
    int count;
    const char *names[MAX_NAMED];
} found;

static void note(found *f, const ir_node *node)
{
    if (f->count < MAX_NAMED) f->names[f->count] = node->name;
    f->count++;
}

/* Returns whether both matrices of a matmul depend on the inputs; with one constant it is a linear. */
static bool is_general_matmul(const ir_node *node)
{
    if (node->op != &ir_ops[IR_OP_MatMul] && node->op != &ir_ops[IR_OP_Einsum]) return false;
    int computed = 0;
    for (int i = 0; i < node->input_count; i++) computed += node->inputs[i]->constant == NULL;
    return computed > 1;
}

static void hint(const co_hooks *hooks, const found *f, const char *what, const char *consequence)
{
    char text[1024];
    if (f->count == 0 || hooks->warning == NULL) return;
    int used = snprintf(text, sizeof text, "hint: %d %s not fused into attention: ", f->count, what);
    for (int i = 0; i < f->count && i < MAX_NAMED && used < (int)sizeof text - 256; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s\"%.100s\"", i > 0 ? ", " : "", f->names[i]);
    snprintf(text + used, sizeof text - (size_t)used, "%s; %s (docs/reference/fused-patterns.md)",
             f->count > MAX_NAMED ? ", …" : "", consequence);
    hooks->warning(hooks->user, text);
}

void co_hint_unfused(const ir_graph *graph, const co_hooks *hooks)
{
    found matmuls = {.count = 0}, softmaxes = {.count = 0};
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) continue;
        if (is_general_matmul(node)) note(&matmuls, node);
        if (node->op == &ir_ops[IR_OP_Softmax]) note(&softmaxes, node);
    }
    /* A lone softmax pools or classifies; next to matmuls of computed matrices it may be attention. */
    hint(hooks, &matmuls, "matmuls are", "they run as general loops");
    if (matmuls.count > 0)
        hint(hooks, &softmaxes, "softmaxes are", "a supported attention pattern would be a single kernel");
}
