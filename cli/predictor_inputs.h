/* predictor_inputs.h — training options that a predictor reads, and options with analytic estimates, for `mdot
 * inspect`. */
#ifndef CLI_PREDICTOR_INPUTS_H
#define CLI_PREDICTOR_INPUTS_H

#include "mdot/mdot.h"

/* Prints the options of `mdot predict` that the predictor reads, reads in part, or ignores. Prints nothing for
 * artefacts other than job predictors. */
void cli_print_reads(const mdot_predictor *predictor);
/* Prints the same as a member of a JSON object, behind a comma, by the numbers' names (MDOT_CONFIGURATION_MAP). */
void cli_json_reads(const mdot_predictor *predictor);

#endif
