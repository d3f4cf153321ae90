/* parameters.h — the constants that training updates. Private to frontend/job. */
#pragma once

#include "frontend/job/fe_job.h"

/* Does the name belong to a buffer, which the model keeps without training it? */
bool fe_is_buffer(const char *name);
/* Marks the parameters that the file stores. Sets job->parameters, to NULL if memory runs out. */
void fe_parameters_create(fe_job *job);
/* Records that the constant with this id was computed from the node's inputs. */
void fe_parameters_derive(fe_parameters *parameters, const ir_node *node, int id);
/* Adds a trained parameter missing from the file, for example the scale of an unfolded BatchNormalization. */
void fe_parameters_add(fe_parameters *parameters, const ir_value *value);
/* Is the value a parameter, trained or frozen (parameters.c)? The value may be NULL. */
bool fe_is_parameter(const fe_job *job, const ir_value *value);
/* Is the value an at least partly trained parameter? The value may be NULL. */
bool fe_is_trained(const fe_job *job, const ir_value *value);
/* Is the operand a parameter of this node? The running statistics of a BatchNormalization and the scales of a Resize
 * are excluded. */
bool fe_is_parameter_operand(const fe_job *job, const ir_node *node, int input);
/* Likewise, and does training update at least a part of it? */
bool fe_is_trained_operand(const fe_job *job, const ir_node *node, int input);
/* Adds the parameters behind a constant that are still uncounted to *trained and *frozen. `counted` has one entry per
 * value id. */
void fe_count_parameter(const fe_job *job, const ir_value *value, bool *counted, double *trained, double *frozen);
/* Records that the parameter receives a gradient. */
void fe_parameter_receives(fe_parameters *parameters, const ir_value *value);
/* Freezes all parameters that receive none. */
void fe_freeze_unreached(fe_parameters *parameters);
