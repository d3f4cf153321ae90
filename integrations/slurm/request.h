/* request.h — what a user writes behind --mdot=: a training job's file, how it trains, how long.
 *
 *     resnet50.job,batch=256,precision=amp,epochs=90,dataset=1281167
 *
 * The submit side reads it for the file and tells the user what is wrong; the controller reads what stands behind the
 * file again and trusts nothing of it. */
#ifndef SL_REQUEST_H
#define SL_REQUEST_H

#include "mdot/mdot.h"

enum { SL_REQUEST_BYTES = 1024 }; /* of the whole text, its end included */

typedef struct sl_request {
    char file[SL_REQUEST_BYTES]; /* empty where the text names none */
    mdot_configuration training; /* without GPUs, which Slurm knows; batch 0: the job's */
    bool has_optimizer;          /* the text names one; otherwise it is the job's */
    double steps;                /* 0: not said */
    double epochs, dataset;      /* both or neither; 0: not said */
} sl_request;

/* `text` begins with a file, unless it begins with KEY=. INVALID_ARGUMENT names the key; messages hold
 * no control characters. */
mdot_status sl_request_parse(const char *text, sl_request *out_request, mdot_error *err);

/* What stands in `text` behind the file. */
const char *sl_request_settings(const char *text);

/* Steps of the whole training where so many samples make one; 0 where it is not said. */
double sl_request_steps(const sl_request *request, double samples_of_step);

#endif
