/* modules.h — the module that an operator was exported from. Private to frontend/job. */
#ifndef FE_MODULES_H
#define FE_MODULES_H

#include "frontend/job/fe_job.h"

/* The module of an operator, in the graph's arena. NULL if its names contain none, or if memory runs out. The three
 * functions derive it from the parameters or else the node, from the parameters alone, and from the node alone. */
const char *fe_operator_module(const fe_job *job, const fe_operator *op);
const char *fe_operator_parameter_module(const fe_job *job, const fe_operator *op);
const char *fe_operator_scope(const fe_job *job, const fe_operator *op);

#endif
