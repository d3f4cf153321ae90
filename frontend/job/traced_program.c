/* traced_program.c — see traced_program.h. */
#include "frontend/job/traced_program.h"

#include "frontend/job/fe_job.h"
#include "ir/ops.h"

#include <string.h>

static const char *note_of(const ir_graph *graph, const char *key)
{
    for (int i = 0; i < graph->note_count; i++)
        if (strcmp(graph->notes[i].key, key) == 0) return graph->notes[i].value;
    return NULL;
}

bool fe_is_traced(const ir_graph *graph)
{
    const char *note = note_of(graph, "mdot.program");
    return note != NULL && strcmp(note, "1") == 0;
}

const fe_names *fe_frozen_names(const ir_graph *graph)
{
    const char *cursor = note_of(graph, "mdot.frozen");
    fe_names *names = cursor != NULL ? fe_names_create(graph->arena) : NULL;
    while (names != NULL && *cursor != '\0') {
        size_t length = strcspn(cursor, "\n");
        const char *name = ir_arena_strndup(graph->arena, cursor, length);
        if (name == NULL) return NULL;
        if (length > 0 && fe_names_find(names, name) < 0 && !fe_names_add(names, name, 0)) return NULL;
        cursor += length + (cursor[length] == '\n');
    }
    return names;
}

/* Is the path the module, or a module around it? */
static bool contains(const char *path, size_t length, const char *module)
{
    return strncmp(path, module, length) == 0 && (module[length] == '\0' || module[length] == '.');
}

bool fe_is_recomputed(const ir_graph *graph, const char *module)
{
    const char *cursor = module != NULL ? note_of(graph, "mdot.recomputed") : NULL;
    while (cursor != NULL && *cursor != '\0') {
        size_t length = strcspn(cursor, "\n");
        if (length > 0 && contains(cursor, length, module)) return true;
        cursor += length + (cursor[length] == '\n');
    }
    return false;
}

/* A training program returns the loss, a floating-point number. */
static bool has_loss(const ir_graph *graph)
{
    for (int i = 0; i < graph->output_count; i++) {
        const ir_type *type = &graph->outputs[i]->type;
        if (type->rank == 0 && ir_dtype_is_float(type->dtype)) return true;
    }
    return false;
}

static mdot_attention attention_of(const fe_job *job)
{
    const char *note = note_of(job->graph, "mdot.attention");
    if (note == NULL) return MDOT_ATTENTION_PROGRAM;
    if (strcmp(note, "fused") == 0) return MDOT_ATTENTION_FLASH;
    if (strcmp(note, "written") == 0) return MDOT_ATTENTION_EAGER;
    fe_job_warn(job, "%s: mdot.attention is '%s'; accepted: fused, written; the attention counts as unknown",
                job->graph->name, note);
    return MDOT_ATTENTION_PROGRAM;
}

void fe_job_add_program(fe_job *job)
{
    if (!fe_is_traced(job->graph)) return;
    const mdot_job_program program = {.struct_size = sizeof program,
                                      .precision = MDOT_PRECISION_PYTORCH,
                                      .attention = attention_of(job),
                                      .has_loss = has_loss(job->graph)};
    mdot_job *plain = job->result;
    job->result = NULL;
    job->status = mdot_job_with_program(plain, &program, &job->result, job->err);
    mdot_job_destroy(plain);
}

bool fe_stops_gradient(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Opaque] && ir_node_int(node, FE_STOPS_GRADIENT, 0) != 0;
}
