/* cuda_expr.h — scalar expressions as CUDA C, and elements of buffers in any memory space. */
#ifndef CU_EXPR_H
#define CU_EXPR_H

#include "codegen/cuda/cuda_step.h"

/* An expression's C text; `acc` is the text of ACC 0. An I64 expression has type int if all its values fit. */
const char *cu_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* The same, always in the expression's own type. */
const char *cu_typed_expression(cu_function *f, const pl_expr *expr, const char *acc);
/* "name[index]" for one element, where index is an expression over the loops. */
const char *cu_element(cu_function *f, int buffer, const cu_location *location, const pl_expr *index,
                       const char *name_hint);
/* Prints statements that store the value's text at `index` in all locations of a buffer. */
void cu_store(cu_function *f, int buffer, const pl_expr *index, const char *value, const char *indent);
/* The same for an index that is the text of a sum, over the whole buffer; the element is the plain one. */
const char *cu_element_at(cu_function *f, int buffer, const char *index, const char *name_hint);
void cu_store_at(cu_function *f, int buffer, const char *index, const char *value, const char *indent);
/* Index of element (row, column) of a matrix, as an expression of loops 0 and 1. */
const pl_expr *cu_matrix_index(cu_function *f, const pl_matrix *matrix);
bool cu_check_types(cu_function *f, const pl_expr *expr);

#endif
