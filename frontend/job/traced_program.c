/* traced_program.c — see traced_program.h. */
#include "frontend/job/traced_program.h"

#include "frontend/job/fe_job.h"
#include "frontend/job/job_tables.h"
#include "ir/ops.h"

#include <math.h>
#include <string.h>

static const char *note_of(const ir_graph *graph, const char *key)
{
    for (int i = 0; i < graph->note_count; i++)
        if (strcmp(graph->notes[i].key, key) == 0) return graph->notes[i].value;
    return NULL;
}

static bool is_set(const ir_graph *graph, const char *key)
{
    const char *note = note_of(graph, key);
    return note != NULL && strcmp(note, "1") == 0;
}

bool fe_is_traced(const ir_graph *graph) { return is_set(graph, "mdot.program"); }
bool fe_is_compiled(const ir_graph *graph) { return is_set(graph, "mdot.compiled"); }

const fe_names *fe_noted_names(const ir_graph *graph, const char *key)
{
    const char *cursor = note_of(graph, key);
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

/* Notes with the names of nodes, and the flags that they give to operators. */
static const struct {
    const char *key;
    uint32_t flag;
} noted_flags[FE_NOTED_FLAGS] = {{"mdot.kept", 0},
                                 {"mdot.repeated", MDOT_OPERATOR_RECOMPUTED},
                                 {"mdot.offloaded", MDOT_OPERATOR_OFFLOADED},
                                 {"mdot.ran_full", MDOT_OPERATOR_RAN_FULL},
                                 {"mdot.ran_half", MDOT_OPERATOR_RAN_HALF},
                                 {"mdot.once_more", MDOT_OPERATOR_ONCE_MORE},
                                 {"mdot.twice_more", MDOT_OPERATOR_TWICE_MORE}};

void fe_read_noted_nodes(const ir_graph *graph, const fe_names **out_nodes)
{
    for (int i = 0; i < FE_NOTED_FLAGS; i++) out_nodes[i] = fe_noted_names(graph, noted_flags[i].key);
}

static bool is_noted(const fe_names *names, const ir_node *node)
{
    return names != NULL && fe_names_find(names, node->name) >= 0;
}

uint32_t fe_noted_flags(const fe_names *const *nodes, const ir_node *node)
{
    uint32_t flags = 0;
    for (int i = 0; i < FE_NOTED_FLAGS; i++)
        if (is_noted(nodes[i], node)) flags |= noted_flags[i].flag;
    return flags;
}

bool fe_is_kept(const fe_names *const *nodes, const ir_node *node) { return is_noted(nodes[0], node); }

/* Compares with the graph as it was read, and warns. */
static bool work_differs(const fe_job *job)
{
    static const double tolerance = 0.02;
    double read = job->check.dispatched_flops[0], own = job->check.job_flops[0];
    if (fe_is_traced(job->graph) || fabs(own - read) <= tolerance * fmax(read, 1)) return false;
    fe_job_warn(
        job,
        "%s: work-differs: the job's products have %.4g FLOPs forward, and those of the file %.4g at batch %lld; "
        "intervals include both",
        job->graph->name, own, read, (long long)job->batch);
    return true;
}

void fe_job_add_program(fe_job *job)
{
    if (!work_differs(job) && !fe_is_traced(job->graph)) return;
    const mdot_job_program program = {.struct_size = sizeof program,
                                      .precision = MDOT_PRECISION_PYTORCH,
                                      .attention = attention_of(job),
                                      .has_loss = has_loss(job->graph),
                                      .check = job->check};
    mdot_job *plain = job->result;
    job->result = NULL;
    job->status = mdot_job_with_program(plain, &program, &job->result, job->err);
    mdot_job_destroy(plain);
}

static bool is_marked(const ir_node *node, const char *attribute)
{
    return node->op == &ir_ops[IR_OP_Opaque] && ir_node_int(node, attribute, 0) != 0;
}

bool fe_stops_gradient(const ir_node *node) { return is_marked(node, FE_STOPS_GRADIENT); }

bool fe_is_view(const ir_node *node) { return is_marked(node, FE_VIEW); }

bool fe_is_parameter_work(const fe_job *job, const ir_node *node)
{
    if (!fe_is_traced(job->graph) || ir_node_int(node, "packs", 0) != 0) return false;
    const fe_row *row = fe_row_of(node);
    if (row->is_free || (row->traits.traits & MDOT_TRAIT_VIEW) != 0) return false;
    const ir_value *index = node->op == &ir_ops[IR_OP_Gather] ? node->inputs[1] : NULL;
    if (index != NULL && index->type.rank == 0) return false; /* selects */
    return !row->is_free_between_floats || !ir_dtype_is_float(node->inputs[0]->type.dtype);
}

void fe_find_parameter_work(const fe_job *job, bool *out_once)
{
    if (!fe_is_traced(job->graph)) return;
    for (const ir_node *node = job->graph->first; node != NULL; node = node->next) {
        bool once = node->input_count > 0;
        for (int i = 0; i < node->input_count && once; i++) {
            const ir_value *value = node->inputs[i];
            once = value == NULL || value->constant != NULL || out_once[value->id];
        }
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != NULL) out_once[node->outputs[i]->id] = once;
    }
}
