/* signature_writer.h — appends numbers, buffers and expressions to the signature of a kernel. */
#ifndef CG_CPU_SIGNATURE_WRITER_H
#define CG_CPU_SIGNATURE_WRITER_H

#include "codegen/cpu/pointer_map.h"
#include "plan/plan.h"

typedef struct cg_signature_writer {
    const pl_plan *plan;
    ir_arena *arena;
    size_t count, capacity;
    unsigned char *bytes;
    int buffer_count, buffer_capacity;
    int *buffers;         /* in the order of first use */
    int *position;        /* index of each plan buffer in `buffers`, or -1 */
    cg_pointer_map nodes; /* expression → its number, starting at 1 */
    size_t node_count;
    bool failed;
} cg_signature_writer;

void cg_signature_add(cg_signature_writer *w, int64_t value);
void cg_signature_add_real(cg_signature_writer *w, double value);
void cg_signature_add_dim(cg_signature_writer *w, ir_dim dim);
void cg_signature_add_buffer(cg_signature_writer *w, int buffer); /* -1: none */
void cg_signature_add_matrix(cg_signature_writer *w, const pl_matrix *matrix);
/* A node that was written before becomes a reference. NULL: no expression. */
void cg_signature_add_expr(cg_signature_writer *w, const pl_expr *expr);

#endif
